import { once } from '#platform/events';
import { dirname, delimiter } from '#platform/paths';
import { Writable, type Readable, finished } from '#platform/streams';
import { describeError } from '../../../errors.js';
import { version } from '../../../version.js';
import { afterWatching } from '../../progress/watch-clock.js';
import { checkCommand } from '../command-check.js';
import { exitCodes } from '../job.js';
import type { OutputSinks, OutputStream } from '../job-output.js';
import { LocalRanks } from '../local-ranks.js';
import type { MeetingPoint } from '../meeting-point.js';
import { freeAddress } from '../meeting-point.js';
import { rankCommands } from '../rank-commands.js';
import { FrameReader, frameKinds, writeControl, writeFrame } from './frames.js';
import { Liveness } from './liveness.js';
import { endsOf, meetingAddress } from './meeting-host.js';
import { GREETING_MARK, WINDOW_BYTES, type Greeting, type Preparation, type ToAgent, type ToLauncher } from './protocol.js';

/** Bytes of a rank's output that wait for their turn. */
const SINK_BYTES = 64 * 1024;

/**
 * Starts the ranks of this host for a launcher on another one, which ssh connects with standard input and output.
 *
 * When the connection breaks or falls silent, all ranks are ended: SIGTERM, and SIGKILL after the grace time. When this
 * process is killed, the watchdog of its ranks ends them.
 *
 * @returns the exit code when no process of the job is left
 */
export async function runAgent(input: Readable, output: Writable): Promise<number> {
  const sshConnection = process.env['SSH_CONNECTION'] ?? '';
  output.write(`\n${GREETING_MARK}${JSON.stringify({ version, sshConnection } satisfies Greeting)}\n`);
  const agent = new Agent(output);
  const reader = new FrameReader((kind, payload) => agent.take(kind, payload));
  input.on('data', (chunk: Buffer) => {
    try {
      reader.push(chunk);
    } catch {
      agent.disconnect();
    }
  });
  for (const event of ['end', 'error', 'close']) input.once(event, () => agent.disconnect());
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => agent.disconnect());
  output.on('error', () => agent.disconnect());
  process.stderr.on('error', () => undefined);
  return agent.finished;
}

class Agent {
  readonly finished: Promise<number>;
  readonly #output: Writable;
  readonly #sinks: WindowedOutput;
  #finish: (code: number) => void = () => undefined;
  #preparation: (Preparation & { readonly run: (localRank: number) => readonly [string, ...string[]] }) | undefined;
  #ranks: LocalRanks | undefined;
  #liveness: Liveness | undefined;
  #isConnected = true;

  constructor(output: Writable) {
    this.#output = output;
    this.#sinks = new WindowedOutput(output);
    this.finished = new Promise((resolve) => (this.#finish = resolve));
  }

  take(kind: number, payload: Buffer): void {
    this.#liveness?.received();
    if (kind === frameKinds.input) this.#feed(payload);
    else this.#obey(JSON.parse(payload.toString()) as ToAgent);
  }

  /** The connection to the launcher has ended. */
  disconnect(): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    this.#liveness?.stop();
    this.#sinks.discard();
    void this.#endRanks();
  }

  #obey(message: ToAgent): void {
    switch (message.type) {
      case 'prepare':
        void this.#prepare(message);
        return;
      case 'start':
        this.#start(message.meetingPoint);
        return;
      case 'signal':
        if (message.signal === 'SIGSTOP' || message.signal === 'SIGCONT') this.#liveness?.suspend(message.signal === 'SIGSTOP');
        this.#ranks?.signal(message.signal);
        return;
      case 'written':
        this.#sinks.written(message.bytes);
        return;
      case 'finish':
        void this.#finishRanks();
        return;
      case 'alive':
        return;
    }
  }

  async #prepare(message: Preparation): Promise<void> {
    const { heartbeatMs, directory, ranks, bindTo, isMeetingHost, nodeIsGiven } = message;
    const [name, ...args] = message.command;
    this.#liveness = new Liveness(
      heartbeatMs,
      () => this.#send({ type: 'alive', states: this.#ranks?.states() ?? [] }),
      () => {
        // The launcher may have been stopped, and shows ssh's last line.
        process.stderr.write(
          `nothing came from tccl run for ${heartbeatMs / 1000} s, so its ranks were ended (TCCL_HEARTBEAT)\n`,
        );
        this.disconnect();
      },
    );
    const refuse = (text: string, exitCode: number) => this.#send({ type: 'refused', message: text, exitCode });
    const env = rankEnvironment(message);
    const path = env['PATH'] ?? '';
    const check = checkCommand([nodeIsGiven && name === 'node' ? process.execPath : name, ...args], path, directory);
    if (check.kind === 'refused') {
      refuse(check.message, check.exitCode);
      return;
    }
    try {
      process.chdir(directory);
      const run = rankCommands(check.command, ranks.count, bindTo, path);
      this.#preparation = { ...message, run };
      if (!isMeetingHost) {
        this.#send({ type: 'ready' });
        return;
      }
      const { server } = endsOf(process.env['SSH_CONNECTION'] ?? '');
      const address = ranks.count === ranks.total ? freeAddress('127.0.0.1') : meetingAddress(env, server);
      this.#send({ type: 'ready', address: await address });
    } catch (error) {
      refuse(describeError(error), exitCodes.failed);
    }
  }

  #start(meetingPoint: MeetingPoint): void {
    if (this.#preparation === undefined) return;
    const { ranks, graceMs, timeoutMs, run } = this.#preparation;
    try {
      this.#ranks = new LocalRanks({
        ranks,
        command: run,
        env: rankEnvironment(this.#preparation),
        meetingPoint,
        output: this.#sinks,
        input: 'pipe',
        graceMs,
        timeoutMs,
      });
    } catch (error) {
      this.#send({ type: 'refused', message: describeError(error), exitCode: exitCodes.failed });
      return;
    }
    this.#ranks.input?.on('error', () => undefined);
    const started = new Set(this.#ranks.ranks.map(({ rank }) => rank));
    for (const rank of this.#ranks.ranks) {
      void rank.ended.then((ending) => this.#send({ type: 'ended', rank: rank.rank, ending }));
      void rank.delivered.then(() => this.#send({ type: 'sent', rank: rank.rank }));
    }
    // Ranks behind one that could not be started.
    for (let rank = ranks.first; rank < ranks.first + ranks.count; rank++) {
      if (started.has(rank)) continue;
      this.#send({ type: 'ended', rank, ending: { kind: 'code', code: 0 } });
      this.#send({ type: 'sent', rank });
    }
  }

  /** Writes to rank 0's standard input; an empty chunk ends it. */
  #feed(chunk: Buffer): void {
    const input = this.#ranks?.input;
    if (input === undefined) return;
    if (chunk.length === 0) input.end();
    // Input that a rank no longer reads counts as taken.
    else input.write(chunk, () => this.#send({ type: 'taken', bytes: chunk.length }));
  }

  async #finishRanks(): Promise<void> {
    await this.#ranks?.finish(this.#preparation?.graceMs ?? 0);
    this.#liveness?.stop();
    this.#send({ type: 'finished' });
    if (this.#output.writableLength > 0) await Promise.race([once(this.#output, 'drain'), once(this.#output, 'close')]);
    this.#finish(0);
  }

  async #endRanks(): Promise<void> {
    const graceMs = this.#preparation?.graceMs ?? 0;
    const ranks = this.#ranks;
    if (ranks !== undefined) {
      ranks.signal('SIGCONT');
      ranks.signal('SIGTERM');
      const stop = afterWatching(graceMs, () => ranks.signal('SIGKILL'));
      await Promise.all(ranks.ranks.map(({ ended }) => ended));
      stop();
      await ranks.finish(graceMs);
    }
    this.#finish(exitCodes.failed);
  }

  #send(message: ToLauncher): void {
    if (this.#isConnected) writeControl(this.#output, message);
  }
}

/**
 * The environment of ssh on this host with the launcher's variables. The directory of this `node` is in PATH; in front, if the
 * user named it. Both that of its name and that of its file count, because the name may be a symbolic link.
 */
function rankEnvironment({ env: ours, nodeIsGiven }: Pick<Preparation, 'env' | 'nodeIsGiven'>): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, ...ours };
  const before = (env['PATH'] ?? '').split(delimiter).filter((directory) => directory !== '');
  const own = [process.argv0, process.execPath].filter((path) => path.includes('/')).map((path) => dirname(path));
  const added = new Set(nodeIsGiven ? own : own.filter((directory) => !before.includes(directory)));
  return { ...env, PATH: [...added, ...before].join(delimiter) };
}

/** Sends the output of ranks, limited by the launcher's window, so that control messages never wait behind it. */
class WindowedOutput implements OutputSinks {
  readonly #output: Writable;
  #roomBytes = WINDOW_BYTES;
  #isDiscarding = false;
  /** Writes that wait for room. */
  readonly #waiting: (() => void)[] = [];

  constructor(output: Writable) {
    this.#output = output;
  }

  stdio(): 'pipe' {
    return 'pipe';
  }

  async take(rank: number, stream: OutputStream, source: Readable): Promise<void> {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(rank);
    const sink = new Writable({
      highWaterMark: SINK_BYTES,
      write: (chunk: Buffer, _encoding, done) => {
        const send = () => {
          if (!this.#isDiscarding) {
            this.#roomBytes -= chunk.length;
            writeFrame(this.#output, frameKinds[stream], header, chunk);
          }
          done();
        };
        if (this.#roomBytes > 0 || this.#isDiscarding) send();
        else this.#waiting.push(send);
      },
    });
    source.pipe(sink, { end: false });
    source.once('close', () => sink.end());
    await finished(sink);
  }

  written(bytes: number): void {
    this.#roomBytes += bytes;
    while (this.#roomBytes > 0) {
      const send = this.#waiting.shift();
      if (send === undefined) return;
      send();
    }
  }

  /** Discards further output, so that ranks that write it do not wait. */
  discard(): void {
    this.#isDiscarding = true;
    for (const send of this.#waiting.splice(0)) send();
  }
}
