import { escape } from '../draw/markup.js';

/**
 * A self-contained page, without scripts or external files; light and dark.
 * @param style rules of this page's own, after those of all pages
 */
export function page(title: string, style: string, parts: readonly string[]): string {
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${escape(title)}</title>`,
    `<style>${STYLE}${style}</style>`,
    '</head>',
    '<body>',
    '<main>',
    ...parts,
    '</main>',
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

/**
 * A table whose rows become lists of names and values on a narrow screen.
 *
 * @param styles of the columns
 */
export function stackedTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  styles: readonly string[] = heads.map(() => 'l'),
): string {
  const head = heads.map((name, column) => `<th class="${styles[column] ?? ''}">${escape(name)}</th>`).join('');
  const body = rows.map((row) => {
    const cells = row.map(
      (cell, column) =>
        `<td class="${styles[column] ?? ''}" data-name="${escape(heads[column] ?? '')}"><span>${escape(cell)}</span></td>`,
    );
    return `<tr>${cells.join('')}</tr>`;
  });
  return `<div class="card scroll"><table class="stack"><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

/** A part of a page. */
export function section(title: string, content: string): string {
  return `<section><h2>${escape(title)}</h2>${content}</section>`;
}

/** Style sheet of all pages. */
const STYLE = [
  ':root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1c2128;--dim:#667085;--line:#e4e7ec;--accent:#2f6fde;--yes:#1f7a48;--yesbg:#e3f4ea;--no:#667085;--nobg:#eef0f3;--part:#8a5a00;--partbg:#fdf1d8}',
  '@media (prefers-color-scheme:dark){:root{--bg:#0e1116;--card:#15181d;--ink:#e6e8eb;--dim:#98a2b3;--line:#2d333b;--accent:#6ea8fe;--yes:#7fd6a5;--yesbg:#16301f;--no:#98a2b3;--nobg:#22272e;--part:#f0c674;--partbg:#352a12}}',
  '*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif}',
  'main{max-width:1260px;margin:0 auto;padding:36px 24px 48px}',
  'h1{font-size:28px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}h2{font-size:17px;margin:36px 0 12px}h3{font-size:14px;margin:0 0 8px}',
  'p{margin:0}.dim{color:var(--dim)}.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin:0 0 14px}',
  '.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:22px 0 0}',
  '.figure{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px}.figure b{display:block;font-size:24px;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums}.figure span{color:var(--dim);font-size:13px}',
  '.scroll{overflow-x:auto}figure{margin:0}svg.tccl{display:block;width:100%;height:auto;min-width:680px}',
  '.tables{display:flex;flex-wrap:wrap;gap:14px}.tables .card{margin:0;flex:1 0 auto;max-width:100%}',
  'table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}th{font-weight:500;color:var(--dim);text-align:right;padding:4px 8px;border-bottom:1px solid var(--line);white-space:nowrap}',
  'td{text-align:right;padding:4px 8px;border-bottom:1px solid var(--line);white-space:nowrap}tr:last-child td{border-bottom:0}.l{text-align:left}',
  '.load{display:grid;grid-template-columns:235px 1fr 150px;gap:12px;align-items:center;font-size:13.5px;margin:7px 0}.bar{height:9px;border-radius:5px;background:var(--nobg);overflow:hidden}.bar i{display:block;height:100%;border-radius:5px;background:var(--accent)}.load .r{text-align:right;color:var(--dim);font-variant-numeric:tabular-nums}',
  '.ring{display:flex;flex-wrap:wrap;gap:4px;align-items:center;margin:5px 0;font-size:13px;font-variant-numeric:tabular-nums}.ring .ch{color:var(--dim);min-width:104px}',
  '.chip{border:1px solid var(--line);border-radius:6px;padding:1px 7px;background:var(--nobg)}.chip.net{background:var(--partbg);color:var(--part);border-color:transparent}',
  '.uses{display:grid;grid-template-columns:max-content max-content 1fr;gap:8px 14px;align-items:baseline;font-size:14px}.badge{border-radius:999px;padding:1px 10px;font-size:12.5px;font-weight:550}',
  '.yes{color:var(--yes);background:var(--yesbg)}.no{color:var(--no);background:var(--nobg)}.partly{color:var(--part);background:var(--partbg)}',
  'code{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--nobg);border-radius:5px;padding:1px 6px}footer{color:var(--dim);font-size:13px;margin-top:36px}',
  '.stack th{white-space:normal}@media (max-width:740px){.stack thead{display:none}.stack tr{display:block;padding:6px 0;border-bottom:1px solid var(--line)}.stack tr:last-child{border-bottom:0}',
  '.stack td,.stack td.l{display:flex;justify-content:space-between;gap:14px;padding:1px 0;border:0;white-space:normal;text-align:right}.stack td span{min-width:0;overflow-wrap:anywhere}.stack td::before{content:attr(data-name);color:var(--dim);text-align:left}}',
  '@media (max-width:640px){.load{grid-template-columns:1fr}.load .r{text-align:left}.uses{grid-template-columns:max-content 1fr}.uses p{grid-column:1/-1}}',
].join('');
