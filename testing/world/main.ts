import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { loadRankCode } from './code.js';
import { runJob } from './job.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    ranks: { type: 'string' },
    trace: { type: 'boolean', default: false },
  },
});
const ranks = values.ranks === undefined ? undefined : Number(values.ranks);
const makeCode = await loadRankCode();
const seeds =
  values.seed === undefined
    ? Array.from({ length: Number(values.seeds) }, (_, index) => Number(values.from) + index)
    : [Number(values.seed)];
const sinceMs = performance.now();
let failed = 0;
for (const seed of seeds) {
  const { nRanks, faults, broken, trace, virtualMs } = await runJob(seed, makeCode, ranks);
  if (values.trace) console.log(trace.join('\n'));
  if (broken.length > 0 || values.seed !== undefined) {
    const hash = createHash('sha256').update(trace.join('\n')).digest('hex').slice(0, 16);
    console.log(`seed ${seed}: ${nRanks} ranks, ${virtualMs.toFixed(0)} ms, faults ${JSON.stringify(faults)}, trace ${hash}`);
    for (const line of broken) console.log(`  ${line}`);
  }
  if (broken.length > 0) failed++;
}
const seconds = (performance.now() - sinceMs) / 1000;
console.log(
  `${seeds.length} seeds, ${failed} failed, ${seconds.toFixed(1)} s, ${((seeds.length / seconds) * 60).toFixed(0)} a minute`,
);
process.exitCode = failed > 0 ? 1 : 0;
