import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Folder of the recorded cases of the real code; it lies beside the repository and is no part of it. */
export const oracleCases = fileURLToPath(new URL('../../../../../shared/oracle/cases', import.meta.url));

/** Reason why tests that need them are skipped, or undefined. */
export const oracleMissing = existsSync(oracleCases) ? undefined : `no recorded cases at ${oracleCases}`;

/** Every distinct XML text of the cases whose name begins so, with one name of it. */
export function oracleXmls(filePrefix: string): { readonly name: string; readonly text: string }[] {
  if (oracleMissing !== undefined) return [];
  const byText = new Map<string, string>();
  for (const folder of readdirSync(oracleCases)) {
    for (const file of readdirSync(`${oracleCases}/${folder}`)) {
      if (!file.startsWith(filePrefix) || !file.endsWith('.xml')) continue;
      const text = readFileSync(`${oracleCases}/${folder}/${file}`, 'utf8');
      if (!byText.has(text)) byText.set(text, `${folder}/${file}`);
    }
  }
  return [...byText].map(([text, name]) => ({ name, text }));
}

/** One machine's topology, or another file of a case. */
export function oracleXml(name: string, file = 'topo.xml'): string {
  return readFileSync(`${oracleCases}/${name}/${file}`, 'utf8');
}
