import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openText, sealText } from '../../../../src/runtime/bootstrap/sealed-text.js';

test('a text can be read with the secret only', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(), fc.integer({ min: 1, max: 255 }), (text, place, change) => {
      const secret = randomBytes(32);
      const sealed = sealText(text, secret);
      expect(openText(sealed, secret)).toBe(text);
      expect(sealText(text, secret)).not.toBe(sealed);
      expect(() => openText(sealed, randomBytes(32))).toThrow();
      const changed = Buffer.from(sealed, 'base64');
      const at = place % changed.length;
      changed[at] = changed[at]! ^ change;
      expect(() => openText(changed.toString('base64'), secret)).toThrow();
    }),
  );
});
