// Thread that has the sockets of a rank's collectives and carries them out; started by network-threads.ts.
import { parentPort, workerData, type MessagePort } from '#platform/threads';
import type { Aggregators } from '../aggregator/aggregators.js';
import { setHeartbeat } from '../bootstrap/liveness.js';
import { withHosts } from '../bootstrap/peer-info.js';
import type { Algorithm } from '../algorithms/call.js';
import type { Channels } from '../algorithms/connections/channels.js';
import type { Nic } from '../bootstrap/interfaces.js';
import { Board } from '../device/board.js';
import { loadLibc } from '../device/libc.js';
import { Segment } from '../device/segment.js';
import { Team } from '../device/team.js';
import type { EngineThreadData } from './start-thread.js';
import type { TcclError } from '../../errors.js';
import { clockMs } from '../platform/platform.js';
import { onExit } from '../exit.js';
import { Ending } from '../failure/ending.js';
import { packReason, unpackReason } from '../failure/transfer.js';
import { BootstrapProxy, type Answer, type Members, type BootstrapRequest } from './bootstrap-proxy.js';
import { progressHere } from '../progress/progress.js';
import { CallQueue } from '../algorithms/call-queue.js';
import { callAt, DIE, EngineThreadMemory, EXIT } from './engine-thread-memory.js';
import type { NetworkEngine } from '../algorithms/connections/network-engine.js';
import { openNetwork } from '../algorithms/connections/open-network.js';
import type { ChosenNetwork } from '../transport/networks.js';
import { shorterLimit, type WaitLimits } from '../progress/wait-limits.js';
import { WatchClock } from '../progress/watch-clock.js';
import { named, warnNow } from '../warn.js';

/** Data that a rank passes to the thread. */
export interface NetworkThreadData extends EngineThreadData {
  readonly team: { readonly address: number; readonly members: readonly number[] };
  readonly members: Members;
  readonly shared: boolean;
  readonly net: ChosenNetwork;
  readonly host: string;
  readonly secret: Uint8Array;
  readonly channels: Channels;
  readonly nics: readonly Nic[];
  readonly aggregators: Aggregators | undefined;
  readonly algorithms: readonly Algorithm[];
  readonly spins: number;
  readonly limits: WaitLimits;
  readonly heartbeatMs: number;
  /** True if the rank takes warnings itself; otherwise they go to standard error. */
  readonly takesWarnings: boolean;
  /** Name of the communicator, for warnings. */
  readonly name: string | undefined;
}

export type ToNetworkThread =
  | Answer
  | { readonly kind: 'abort'; readonly reason: Uint8Array }
  | { readonly kind: 'waits'; readonly report: readonly number[] };
export type FromNetworkThread =
  | BootstrapRequest
  | { readonly kind: 'opened'; readonly transports: readonly string[] }
  | { readonly kind: 'warning'; readonly text: string }
  | { readonly kind: 'waits'; readonly report: readonly number[] }
  | { readonly kind: 'failed'; readonly reason: Uint8Array };

const given = workerData as NetworkThreadData;
const {
  members: { rank, peers },
  spins,
  limits,
} = given;
setHeartbeat(given.heartbeatMs);
const port = parentPort as MessagePort;
const post = (message: FromNetworkThread): void => port.postMessage(message);
const warn = (about: string): void => {
  const text = named(withHosts(about, peers), given.name);
  if (given.takesWarnings) post({ kind: 'warning', text });
  else warnNow(text);
};
const { libc } = loadLibc();
const segment = Segment.inThread(given.segment, libc);
const team = new Team(segment, given.team.address, given.team.members);
const memory = new EngineThreadMemory(given.buffer);
// The newest listener runs first, so everything else is closed by then.
onExit(() => memory.ended());
void memory.onDeath(() => process.exit());
const bootstrap = new BootstrapProxy(given.members, post);
const stop = new AbortController();
let abort = (error: unknown): void => stop.abort(error);
/** Reports a wait to the other ranks; does nothing until all connections are made. */
let forwardInCalls: (report: readonly number[]) => void = () => undefined;

port.on('message', (message: ToNetworkThread) => {
  if (message.kind === 'abort') abort(unpackReason(message.reason, rank));
  else if (message.kind === 'waits') forwardInCalls(message.report);
  else bootstrap.take(message);
});
const network = await open();
if (network !== undefined) await serve(network);

/** Makes all connections. Reports the result to the rank, which ends the thread after a failure. */
async function open(): Promise<NetworkEngine | undefined> {
  const { shared, net, host, secret, channels, nics, aggregators, algorithms } = given;
  try {
    const opened = await openNetwork(
      { bootstrap, shared, team, libc, net, host, secret, channels, nics, aggregators },
      stop.signal,
    );
    await opened.openAll(algorithms);
    stop.signal.throwIfAborted();
    bootstrap.rankMayBlock = true;
    post({ kind: 'opened', transports: opened.transports });
    return opened;
  } catch (error) {
    post({ kind: 'failed', reason: packReason(error as Error) });
    return undefined;
  }
}

/** Carries out calls until the rank leaves, or a call fails. */
async function serve(engine: NetworkEngine): Promise<void> {
  const ending = new Ending();
  const fail = (error: unknown): unknown => {
    if (ending.reason !== undefined) return error;
    ending.end(error as Error);
    engine.abort(error as Error);
    queue.abort(error as TcclError);
    memory.gaveUp(packReason(error as Error));
    // Unsent messages are sent before the thread ends.
    void engine.close().finally(() => process.exit());
    return error;
  };
  const queue = new CallQueue({
    engine,
    rank,
    libc,
    spins,
    patience: 0,
    limits,
    warn,
    fail,
    ending,
    messages: {
      throwRecordedFailure: () => undefined,
      forwardReport: (report) => post({ kind: 'waits', report }),
      readReports: () => undefined,
      doing: () => undefined,
    },
    progress: progressHere(),
    parkedRanks: segment.parkedRanks,
    // The rank's own thread records the calls.
    recorder: Board.ofOwn().show({ id: '', name: undefined, rank, nRanks: 0 }),
    progressed: (steps) => memory.setSteps(steps),
  });
  abort = fail;
  forwardInCalls = (report) => {
    toldMs = clockMs();
    engine.forwardReport(report);
  };
  process.on('uncaughtException', fail);
  // Not while the rank itself waits, and reports that, in messages or windows.
  const clock = new WatchClock(shorterLimit(limits));
  let toldMs = -Infinity;
  const answer = (): void => {
    const last = queue.isPending || clockMs() - toldMs < shorterLimit(limits) / 8 ? undefined : queue.lastCall();
    if (last === undefined) return;
    engine.answerWaits(last);
  };
  if (shorterLimit(limits) > 0) clock.every(answer).unref();

  for (let call = await memory.taken(); call.code !== EXIT; call = await memory.taken()) {
    if (call.code === DIE) process.exit();
    try {
      await queue.start(callAt(segment.buffer, call));
    } catch (error) {
      fail(error);
      return; // the rank finds the reason
    }
    memory.completed(engine.steps);
  }
  const goodbye = engine.close();
  memory.completed(engine.steps);
  await goodbye;
  process.exit();
}
