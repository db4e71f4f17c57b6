import type { Communicator } from '../../src/runtime/communicator/communicator.js';
import type { RankCode, RankGlobals } from './code.js';
import { VirtualNetwork } from './network.js';
import { machineOf } from './rank.js';
import { World } from './world.js';

/** Faults of a job. */
export type Fault =
  | { readonly kind: 'crash'; readonly rank: number; readonly atMs: number }
  | { readonly kind: 'stop'; readonly rank: number; readonly atMs: number; readonly forMs: number }
  | {
      readonly kind: 'partition';
      readonly from: number;
      readonly to: number;
      readonly bothWays: boolean;
      readonly atMs: number;
      readonly forMs: number;
    }
  | { readonly kind: 'reset'; readonly atMs: number };

/** Result of a job. */
export interface JobResult {
  readonly seed: number;
  readonly nRanks: number;
  readonly faults: readonly Fault[];
  readonly broken: readonly string[];
  readonly trace: readonly string[];
  readonly virtualMs: number;
}

/** Limits that ranks are given, in milliseconds of virtual time. */
const limits = { initMs: 20_000, callMs: 10_000, heartbeatMs: 3000 };
/** Time beyond its limit that a call may take: other ranks' reports arrive, and connections end. */
const SLACK_MS = 8000;

interface Rank {
  comm: Communicator | undefined;
  /** Description of the call in flight, and its beginning. */
  call: string;
  calledMs: number;
  outcome: { readonly code: string; readonly text: string; readonly atMs: number } | undefined;
  survived: string | undefined;
  isDone: boolean;
}

/** Executes the job of a seed: ranks meet, reduce, and after a failure go on with those that are left. */
export async function runJob(
  seed: number,
  makeCode: (globals: RankGlobals) => RankCode,
  ranks?: number,
  givenFaults?: readonly Fault[],
): Promise<JobResult> {
  const world = new World(seed);
  const { random } = world;
  const nRanks = ranks ?? random.integer(2, 6);
  const faults = givenFaults ?? drawFaults(world, nRanks);
  const broken: string[] = [];
  const network = new VirtualNetwork(world, (rank, run) => void world.after(0.001, rank, run));
  const states = Array.from({ length: nRanks }, (): Rank => ({
    comm: undefined,
    call: 'nothing',
    calledMs: 0,
    outcome: undefined,
    survived: undefined,
    isDone: false,
  }));
  const calls = Array.from({ length: random.integer(1, 30) }, () => ({
    kind: random.of(['allReduce', 'broadcast', 'allGather', 'barrier']),
    count: random.of([1, 7, 1000, 40_000]),
    pauseMs: random.chance(0.3) ? random.integer(0, 200) : 0,
  }));
  const rejected = (reason: unknown): void => void broken.push(`a rejection without a handler: ${textOf(reason)}`);
  process.on('unhandledRejection', rejected);

  const live = (rank: number): boolean => !world.isDead(rank);
  states.forEach((state, rank) => {
    const { init } = makeCode(machineOf(world, network, rank, nRanks));
    world.after(random.integer(0, 300), rank, () => {
      void program(state, rank, init).catch((error: unknown) => broken.push(`rank ${rank}: ${textOf(error)}`));
    });
  });

  async function program(state: Rank, rank: number, init: RankCode['init']): Promise<void> {
    const begin = (call: string): void => {
      state.call = call;
      state.calledMs = world.nowMs;
      world.note(rank, call);
    };
    const env = {
      TCCL_HOSTID: 'one',
      TCCL_COMM_SECRET: 'secret of the virtual world',
      TCCL_INIT_TIMEOUT: String(limits.initMs / 1000),
      TCCL_TIMEOUT: String(limits.callMs / 1000),
      TCCL_HEARTBEAT: String(limits.heartbeatMs / 1000),
    };
    let comm: Communicator | undefined;
    try {
      begin('init');
      comm = state.comm = await init({
        rank,
        nRanks,
        commId: `${network.addressOf(0)}:29500`,
        env,
        onWarning: (text) => world.note(rank, `warning: ${text}`),
      });
      for (const [number, { kind, count, pauseMs }] of calls.entries()) {
        if (pauseMs > 0) await new Promise<void>((resolve) => world.after(pauseMs * random.next(), rank, resolve));
        begin(`${kind} of ${count}, call ${number}`);
        await doCall(comm, kind, count, number, (text) => broken.push(`rank ${rank}: ${text}`));
      }
      begin('close');
      await comm.close();
    } catch (error) {
      const { code = 'none' } = error as { readonly code?: string };
      state.outcome = { code, text: textOf(error), atMs: world.nowMs };
      world.note(rank, `${state.call} failed: ${code} ${textOf(error)}`);
      if (code === 'none') broken.push(`rank ${rank}: an error without a code: ${(error as Error).stack ?? ''}`);
      if (comm !== undefined) {
        try {
          begin('shrink');
          const rest = await comm.shrink();
          begin(`allReduce of 5 among ${rest.nRanks}`);
          await doCall(rest, 'allReduce', 5, 99, (text) => broken.push(`rank ${rank}: after shrink: ${text}`));
          state.survived = `${rest.nRanks} ranks`;
          begin('close');
          await rest.close();
        } catch (second) {
          const { code: next = 'none' } = second as { readonly code?: string };
          state.survived = next;
          world.note(rank, `${state.call} failed: ${next} ${textOf(second)}`);
          if (next === 'none') broken.push(`rank ${rank}: an error without a code: ${(second as Error).stack ?? ''}`);
        }
        begin('close the first');
        await comm.close().catch(() => undefined);
      }
    }
    world.note(rank, 'ends');
    state.isDone = true;
  }

  for (const fault of faults) world.after(fault.atMs, undefined, () => doFault(fault));

  function doFault(fault: Fault): void {
    world.note(undefined, `fault: ${JSON.stringify(fault)}`);
    if (fault.kind === 'crash') {
      world.kill(fault.rank);
      network.crash(fault.rank);
    } else if (fault.kind === 'stop') {
      world.stop(fault.rank);
      world.after(fault.forMs, undefined, () => {
        world.note(undefined, `rank ${fault.rank} goes on`);
        world.resume(fault.rank);
      });
    } else if (fault.kind === 'partition') {
      network.closeWay(fault.from, fault.to, world.nowMs + fault.forMs);
      if (fault.bothWays) network.closeWay(fault.to, fault.from, world.nowMs + fault.forMs);
    } else world.note(undefined, `reset ${network.resetOne() ?? 'nothing'}`);
  }

  const everyoneIsDone = (): boolean => states.every(({ isDone }, rank) => isDone || !live(rank));
  const stoppedMs = faults.reduce((sum, fault) => sum + ('forMs' in fault && fault.forMs < Infinity ? fault.forMs : 0), 0);
  const limitMs = 2 * limits.initMs + 3 * limits.callMs + 4 * SLACK_MS + stoppedMs;
  const end = await world.run(everyoneIsDone, limitMs);
  if (end !== 'over')
    states.forEach(({ isDone, call, calledMs }, rank) => {
      if (!isDone && live(rank)) broken.push(`rank ${rank} hangs in ${call} since ${calledMs.toFixed(0)} ms (${end})`);
    });
  else {
    // Goodbyes travel, sockets close.
    const untilMs = world.nowMs + 15_000;
    await world.run(() => false, untilMs);
    for (const one of network.ends) if (live(one.rank)) broken.push(`rank ${one.rank} left the connection ${one.name} open`);
    for (const [name, { rank }] of network.servers) if (live(rank)) broken.push(`rank ${rank} left the server ${name} open`);
    if (faults.length === 0)
      states.forEach(({ outcome }, rank) => {
        if (outcome !== undefined) broken.push(`rank ${rank} failed without a fault: ${outcome.text}`);
      });
    checkCulprit(faults, states, live, broken);
  }
  process.off('unhandledRejection', rejected);
  for (const { rank, error } of world.thrown) broken.push(`rank ${rank} throws into its event loop: ${textOf(error)}`);
  return { seed, nRanks, faults, broken, trace: world.trace, virtualMs: world.nowMs };
}

/** After one crash alone: the others name that rank, and go on without it. */
function checkCulprit(
  faults: readonly Fault[],
  states: readonly Rank[],
  live: (rank: number) => boolean,
  broken: string[],
): void {
  const [fault, ...more] = faults;
  if (fault?.kind !== 'crash' || more.length > 0) return;
  const left = states.flatMap((_, rank) => (live(rank) ? [rank] : []));
  for (const rank of left) {
    const { outcome, survived } = states[rank] ?? {};
    if (outcome === undefined || survived === undefined) continue;
    if (outcome.code !== 'RANK_DIED' || !outcome.text.includes(`rank ${fault.rank}`))
      broken.push(`rank ${rank} does not name rank ${fault.rank}: ${outcome.code} ${outcome.text}`);
  }
  const failed = left.filter((rank) => states[rank]?.survived !== undefined);
  if (failed.length === left.length)
    for (const rank of left)
      if (states[rank]?.survived !== `${left.length} ranks`)
        broken.push(`rank ${rank} did not go on with ${left.length} ranks, but: ${states[rank]?.survived ?? ''}`);
}

function drawFaults({ random }: World, nRanks: number): Fault[] {
  const atMs = (): number => random.integer(100, 900);
  const faults: Fault[] = [];
  while (faults.length < 3 && random.chance(faults.length === 0 ? 0.8 : 0.3)) {
    const rank = random.integer(0, nRanks);
    const other = (rank + random.integer(1, nRanks)) % nRanks;
    faults.push(
      random.of<Fault>([
        { kind: 'crash', rank, atMs: atMs() },
        { kind: 'stop', rank, atMs: atMs(), forMs: random.of([50, 2000, 15_000, 60_000]) },
        {
          kind: 'partition',
          from: rank,
          to: other,
          bothWays: random.chance(0.7),
          atMs: atMs(),
          forMs: random.of([100, 1000, 1e9]),
        },
        { kind: 'reset', atMs: atMs() },
      ]),
    );
  }
  return faults.sort((one, two) => one.atMs - two.atMs);
}

async function doCall(
  comm: Communicator,
  kind: string,
  count: number,
  number: number,
  wrong: (text: string) => void,
): Promise<void> {
  const { rank, nRanks } = comm;
  const check = (data: Int32Array, from: number, expected: (index: number) => number): void => {
    for (let index = from; index < from + count; index++)
      if (data[index] !== expected(index - from)) {
        wrong(`${kind} ${number}: element ${index} is ${data[index] ?? ''}, not ${expected(index - from)}`);
        return;
      }
  };
  const mine = (r: number, index: number): number => (r + 1) * 31 + index * 7 + number;
  const data = new Int32Array(count);
  const root = number % nRanks;
  if (kind !== 'broadcast' || rank === root) for (let index = 0; index < count; index++) data[index] = mine(rank, index);
  switch (kind) {
    case 'allReduce':
      await comm.allReduce(data);
      check(data, 0, (index) => nRanks * mine(0, index) + (31 * nRanks * (nRanks - 1)) / 2);
      return;
    case 'broadcast':
      await comm.broadcast(data, undefined, root);
      check(data, 0, (index) => mine(root, index));
      return;
    case 'allGather': {
      const all = new Int32Array(count * nRanks);
      await comm.allGather(data, all);
      for (let r = 0; r < nRanks; r++) check(all, r * count, (index) => mine(r, index));
      return;
    }
    default:
      await comm.barrier();
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
