import type { RankCode, RankGlobals } from './code.js';
import { VirtualNetwork } from './network.js';
import { drawJob, waysOf, type Fault, type Job } from './program.js';
import { brokenPromises, SLACK_MS, waitedMs } from './properties.js';
import { Random } from './random.js';
import { limits, RankProgram, type Span } from './rank-program.js';
import { machineOf } from './rank.js';
import { World, type TraceLine } from './world.js';

/** Result of a job. */
export interface JobResult {
  readonly job: Job;
  readonly broken: readonly string[];
  readonly trace: readonly TraceLine[];
  readonly spans: readonly Span[];
  readonly virtualMs: number;
}

type MakeCode = (globals: RankGlobals) => RankCode;

/** Executes the job of a seed; `ranks` and `faults` can be given. */
export async function runSeed(seed: number, makeCode: MakeCode, ranks?: number, faults?: readonly Fault[]): Promise<JobResult> {
  return runJob(drawJob(new Random(seed), seed, ranks, faults), makeCode);
}

/** Executes a job, and checks what the runtime promises. */
export async function runJob(job: Job, makeCode: MakeCode): Promise<JobResult> {
  const world = new World(~job.seed);
  const network = new VirtualNetwork(world, (rank, run) => void world.after(0.001, rank, run));
  const broken: string[] = [];
  const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));
  const rejected = (reason: unknown): void => void broken.push(`a rejection without a handler: ${textOf(reason)}`);
  process.on('unhandledRejection', rejected);
  const programs = Array.from({ length: job.nRanks }, (_, rank) => {
    const { init, enter } = makeCode(machineOf(world, network, rank, job.nRanks));
    world.enters.set(rank, enter);
    const program = new RankProgram(world, job, rank, init, `${network.addressOf(0)}:29500`);
    const lateMs = job.faults.reduce((sum, fault) => (fault.kind === 'late' && fault.rank === rank ? fault.byMs : sum), 0);
    world.after(lateMs + world.random.integer(0, 300), rank, () => {
      void program.run().catch((error: unknown) => broken.push(`rank ${rank}: ${textOf(error)}`));
    });
    return program;
  });
  for (const fault of job.faults)
    if ('atMs' in fault) world.after(fault.atMs, undefined, () => doFault(fault, job, world, network));

  const isLive = (rank: number): boolean => !world.isDead(rank);
  const limitMs = 2 * limits.initMs + 3 * limits.callMs + 4 * SLACK_MS + waitedMs(job.faults);
  const end = await world.run(() => programs.every(({ isDone, rank }) => isDone || !isLive(rank)), limitMs);
  if (end === 'over') {
    // Goodbyes travel, sockets close, also those of ranks that are stopped.
    await world.run(() => false, world.nowMs + 15_000 + waitedMs(job.faults));
    for (const { rank, name } of network.ends) if (isLive(rank)) broken.push(`rank ${rank} left the connection ${name} open`);
    for (const [name, { rank }] of network.servers) if (isLive(rank)) broken.push(`rank ${rank} left the server ${name} open`);
  }
  process.off('unhandledRejection', rejected);
  broken.push(...new Set(world.thrown.map(({ rank, error }) => `rank ${rank} throws into its event loop: ${textOf(error)}`)));
  const living = programs.filter(({ rank }) => isLive(rank));
  broken.push(...brokenPromises(job, living, end));
  return { job, broken, trace: world.trace, spans: programs.flatMap(({ spans }) => spans), virtualMs: world.nowMs };
}

function doFault(fault: Extract<Fault, { readonly atMs: number }>, job: Job, world: World, network: VirtualNetwork): void {
  world.note(undefined, `fault: ${JSON.stringify(fault)}`);
  switch (fault.kind) {
    case 'crash':
      world.kill(fault.rank);
      network.crash(fault.rank);
      return;
    case 'stop':
      world.stop(fault.rank);
      world.after(fault.forMs, undefined, () => {
        world.note(undefined, `rank ${fault.rank} goes on`);
        world.resume(fault.rank);
      });
      return;
    case 'slow':
      world.slow(fault.rank, fault.factor);
      return;
    case 'partition':
      for (const [from, to] of waysOf(job, fault)) {
        network.closeWay(from, to, world.nowMs + fault.forMs);
        if (fault.bothWays) network.closeWay(to, from, world.nowMs + fault.forMs);
      }
      return;
    case 'reset':
      world.note(undefined, `reset ${network.resetOne() ?? 'nothing'}`);
      return;
    case 'stranger':
      network.strangerKnocks(fault.bytes, fault.stays);
  }
}
