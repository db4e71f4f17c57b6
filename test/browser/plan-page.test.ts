import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { tccl } from '../multi-process/cli.js';
import { domOf, missing } from './chromium.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-plan-page-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

it.skipIf(missing)(`the page of a plan shows all columns of its tables at any screen width${missing}`, async () => {
  const file = join(folder, 'plan.html');
  await tccl(['plan', 'dgx-h100', '--nodes', '2', '--html', file]);
  const plan = Buffer.from(readFileSync(file)).toString('base64');
  const widths = [640, 768, 1000, 1280, 1300, 1320, 1340, 1360, 1380, 1400, 1920];
  const dom = domOf(`<!doctype html>
    ${widths.map((width) => `<iframe width="${width}" height="800"></iframe>`).join('')}<pre id="cut"></pre>
    <script>
      const page = new TextDecoder().decode(Uint8Array.from(atob('${plan}'), (character) => character.charCodeAt(0)));
      const cut = [...document.querySelectorAll('iframe')].flatMap((frame) => {
        frame.contentDocument.write(page);
        frame.contentDocument.close();
        const tables = [...frame.contentDocument.querySelectorAll('.tables > *')];
        if (tables.length === 0) return ['no tables'];
        return tables.filter((table) => table.scrollWidth > table.clientWidth).map((table) => frame.width + ': ' + table.firstChild.textContent);
      });
      document.getElementById('cut').textContent = JSON.stringify(cut);
    </script>`);
  expect(/<pre id="cut">([^<]*)<\/pre>/.exec(dom)?.[1]).toBe('[]');
});
