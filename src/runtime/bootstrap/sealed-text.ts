import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * A text that only those can read who know `secret`, in base64: `nonce | tag | encrypted`. The bootstrap network proves who
 * sent what it carries, but does not hide it.
 */
export function sealText(text: string, secret: Uint8Array): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, keyOf(secret), nonce);
  const encrypted = [cipher.update(text, 'utf8'), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...encrypted]).toString('base64');
}

/** The text of {@link sealText}. Throws where another secret sealed it, or it was changed. */
export function openText(sealed: string, secret: Uint8Array): string {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv(CIPHER, keyOf(secret), bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
}

function keyOf(secret: Uint8Array): Buffer {
  return createHmac('sha256', secret).update('tccl sealed text').digest();
}
