import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { tccl } from '../multi-process/cli.js';
import { domOf, missing } from '../browser/chromium.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-plan-page-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Tables and charts of a page that are wider than their place, at some widths of the screen. */
function cutTables(page: string): string | undefined {
  const encoded = Buffer.from(page).toString('base64');
  const widths = [375, 390, 640, 700, 768, 801, 1000, 1280, 1300, 1320, 1340, 1360, 1380, 1400, 1920];
  const dom = domOf(`<!doctype html>
    ${widths.map((width) => `<iframe width="${width}" height="800"></iframe>`).join('')}<pre id="cut"></pre>
    <script>
      const page = new TextDecoder().decode(Uint8Array.from(atob('${encoded}'), (character) => character.charCodeAt(0)));
      const cut = [...document.querySelectorAll('iframe')].flatMap((frame) => {
        frame.contentDocument.write(page);
        frame.contentDocument.close();
        const tables = [...frame.contentDocument.querySelectorAll('.card:has(table)')];
        if (tables.length === 0) return ['no tables'];
        const charts = [...frame.contentDocument.querySelectorAll('figure.wide, figure.narrow')];
        const shown = charts.filter((chart) => chart.clientWidth > 0);
        const lacks = charts.length > 0 && shown.length !== 1 ? [frame.width + ': ' + shown.length + ' charts'] : [];
        const isCut = (each) => each.scrollWidth > each.clientWidth;
        return [...lacks, ...[...tables, ...shown].filter(isCut).map((each) => frame.width + ': ' + each.textContent.slice(0, 40))];
      });
      document.getElementById('cut').textContent = JSON.stringify(cut);
    </script>`);
  return /<pre id="cut">([^<]*)<\/pre>/.exec(dom)?.[1];
}

it.skipIf(missing).each([
  ['a plan', ['plan', 'dgx-h100', '--nodes', '2']],
  ['a plan without predictions', ['plan', 'dgx-h100', '--nodes', '2', '--no-predict']],
  ['a comparison', ['diff', 'dgx-h100', '--nodes', '2', '--env-b', 'NCCL_NVLS_ENABLE=0']],
  ['an upgrade', ['upgrade', 'dgx-h100', '--nodes', '8', '--from', '2.19.4', '--to', '2.30.7']],
])(`the page of %s shows all columns of its tables, and its chart, at any screen width${missing}`, async (name, args) => {
  const file = join(folder, `${name}.html`);
  await tccl([...args, '--html', file]);
  expect(cutTables(readFileSync(file, 'utf8'))).toBe('[]');
});

it('the page of a comparison has one title, the settings of both, and no empty column', async () => {
  const file = join(folder, 'diff.html');
  await tccl(['diff', 'dgx-h100', '--nodes', '2', '--env-b', 'NCCL_NVLS_ENABLE=0', '--html', file]);
  const html = readFileSync(file, 'utf8');
  expect(html).toContain('<h1>2 x dgx-h100</h1><p class="dim">a: as it is · b: NCCL_NVLS_ENABLE=0</p>');
  expect(html).not.toContain('>rules<');
});
