import { silent } from '../report.js';
import { WINDOW } from './benchmarks.js';
import type { MpiOptions } from './options.js';
import type { MpiReporter } from './run.js';

/** The table of OSU's micro-benchmarks or of IMB, for scripts that read those. */
export function mpiTable(options: MpiOptions, version: string, write: (text: string) => void): MpiReporter {
  const { benchmark, type, api, memory } = options;
  const { name, family, columns } = benchmark;
  const arrays = memory === 'shared' ? 'alloc' : 'plain';
  const windowed = /^osu_(?:bw|bibw|mbw_mr)$/.test(name) ? ` window: ${WINDOW}` : '';
  const how = `# tccl perf version ${version} type: ${type.name} api: ${api} arrays: ${arrays}${windowed}\n`;
  if (family === 'OSU')
    return {
      ...silent,
      start: (nRanks) =>
        write(
          `# ${name} on ${nRanks} ranks\n${how}${'# Size'.padEnd(10)}${columns.map(({ title }) => title.padStart(20)).join('')}\n`,
        ),
      row: ({ bytes, values }) =>
        write(`${String(bytes).padEnd(10)}${values.map((value) => value.toFixed(2).padStart(20)).join('')}\n`),
    };
  const line = `#${'-'.repeat(72)}\n`;
  const titles = ['#bytes', '#repetitions', ...columns.map(({ title }) => title)];
  return {
    ...silent,
    start: (nRanks) =>
      write(
        `${how}\n${line}# Benchmarking ${name} \n# #processes = ${nRanks} \n${line}${titles.map((title) => title.padStart(13)).join('')}\n`,
      ),
    row: ({ bytes, repetitions, values }) =>
      write(
        `${String(bytes).padStart(13)}${String(repetitions).padStart(13)}${values.map((value) => value.toFixed(2).padStart(13)).join('')}\n`,
      ),
  };
}

/** JSON lines: one object a size. docs/reference/perf.md describes the fields. */
export function mpiJson({ benchmark, type, api, memory }: MpiOptions, write: (text: string) => void): MpiReporter {
  let ranks = 0;
  return {
    ...silent,
    start(nRanks) {
      ranks = nRanks;
    },
    row: ({ bytes, repetitions, values }) =>
      write(
        `${JSON.stringify({
          lib: 'tccl',
          benchmark: benchmark.name,
          type: type.name,
          ranks,
          bytes,
          calls: repetitions,
          api,
          memory,
          ...Object.fromEntries(benchmark.columns.map(({ key }, i) => [key, Number((values[i] ?? 0).toPrecision(6))])),
        })}\n`,
      ),
  };
}
