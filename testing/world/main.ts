import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { loadRankCode } from './code.js';
import { runJob, runSeed, type JobResult } from './job.js';
import type { Job } from './program.js';
import { shrinkJob } from './shrink.js';
import { diagramOf, perfettoOf } from './trace.js';

const help = `npm run world [-- options]: the runtime of all ranks on a virtual network and clock

  --seeds N         so many seeds, in place of those of a minute
  --from N          the first seed (default: drawn from the clock)
  --seed N          this seed alone
  --ranks N         so many ranks, in place of 2 to 5
  --trace           what happened, a column for each rank
  --perfetto FILE   the same for ui.perfetto.dev
  --shrink          of each failed seed, the fewest ranks, calls and faults that still fail

  npm run world -- --seed 50 --trace`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    from: { type: 'string' },
    ranks: { type: 'string' },
    trace: { type: 'boolean', default: false },
    perfetto: { type: 'string' },
    shrink: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) console.log(help);
else process.exitCode = (await runSeeds()) > 0 ? 1 : 0;

async function runSeeds(): Promise<number> {
  const makeCode = await loadRankCode();
  // Stacks of the errors that ranks throw take 8 % of the time; --seed prints them.
  if (values.seed === undefined) Error.stackTraceLimit = 0;
  const ranks = values.ranks === undefined ? undefined : Number(values.ranks);
  const first = Number(values.seed ?? values.from ?? Math.floor(Date.now() / 1000) % 1e7);
  const most = Number(values.seed === undefined ? (values.seeds ?? Infinity) : 1);
  const sinceMs = performance.now();
  const sinceCpu = process.cpuUsage();
  const isOver = (done: number): boolean => (most < Infinity ? done >= most : performance.now() - sinceMs > 60_000);
  let failed = 0;
  let done = 0;
  for (; !isOver(done); done++) {
    let result = await runSeed(first + done, makeCode, ranks);
    if (result.broken.length > 0) {
      failed++;
      const onStep = (job: Job): void => console.log(`  smaller: ${JSON.stringify(job)}`);
      if (values.shrink) result = await shrinkJob(result, (job) => runJob(job, makeCode), onStep);
    }
    if (result.broken.length > 0 || values.seed !== undefined) report(result);
  }
  const seconds = (performance.now() - sinceMs) / 1000;
  const { user, system } = process.cpuUsage(sinceCpu);
  const rate = ((done / seconds) * 60).toFixed(0);
  const rateOfCpu = ((done / (user + system)) * 60e6).toFixed(0);
  console.log(
    `${done} seeds from ${first}, ${failed} failed, ${seconds.toFixed(1)} s, ${rate} a minute, ${rateOfCpu} a minute of processor time`,
  );
  return failed;
}

function report(result: JobResult): void {
  const { job, broken, trace, virtualMs } = result;
  if (values.trace) console.log(diagramOf(result));
  if (values.perfetto !== undefined) writeFileSync(values.perfetto, perfettoOf(result));
  const hash = createHash('sha256').update(JSON.stringify(trace)).digest('hex').slice(0, 16);
  const faults = job.faults.length > 0 ? JSON.stringify(job.faults) : 'none';
  console.log(`seed ${job.seed}: ${job.nRanks} ranks, ${virtualMs.toFixed(0)} ms, faults ${faults}, trace ${hash}`);
  for (const line of broken) console.log(`  ${line}`);
}
