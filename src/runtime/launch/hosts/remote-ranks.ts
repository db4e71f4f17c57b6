import { spawn, type ChildProcess } from '#platform/processes';
import { Readable, type Writable } from '#platform/streams';
import { printable } from '../../../printable.js';
import { nameRanks } from '../../bootstrap/rank-list.js';
import { sleep } from '../../platform/platform.js';
import { afterWatching } from '../../progress/watch-clock.js';
import { version } from '../../../version.js';
import type { OutputSinks, OutputStream } from '../job-output.js';
import { isForegroundJob } from '../job.js';
import type { RankRange } from '../local-ranks.js';
import type { MeetingPoint } from '../meeting-point.js';
import type { RankGroup, RunningRank } from '../rank-group.js';
import type { Ending } from '../rank-process.js';
import type { RankState } from '../rank-state.js';
import { FrameReader, frameKinds, writeControl, writeFrame } from './frames.js';
import { Liveness } from './liveness.js';
import { GREETING_MARK, WINDOW_BYTES, type Greeting, type Preparation, type ToAgent, type ToLauncher } from './protocol.js';
import { explainFailedStart, wayName, type RemotePrograms } from './ssh.js';

/** A host refuses or cannot be reached: the line for the user and the exit code. */
export class HostRefusal extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
    /** The host's own message, by which equal refusals are joined. */
    readonly reason?: string,
  ) {
    super(message);
  }
}

/** The message of an agent that is ready to start its ranks. */
export interface Readiness {
  /** `host:port` where the ranks can meet, if requested. */
  readonly address: string | undefined;
}

/** Time after SIGKILL in which a host must report the end of its ranks, milliseconds. */
const KILLED_MS = 10_000;
/** Time for ssh to end by itself after its agent, milliseconds. */
const SSH_ENDS_MS = 3000;
/** Bytes that are kept of output before the greeting, and of messages of ssh. */
const KEPT_CHARACTERS = 16_384;

/** An agent on another host and its ranks there, through ssh. */
export class RemoteRanks implements RankGroup {
  readonly ranks: readonly RemoteRank[];
  readonly isRemote = true;
  readonly host: string;
  readonly #ssh: ChildProcess;
  readonly #toAgent: Writable;
  readonly #programs: RemotePrograms;
  /** Resolves with the agent's greeting. */
  readonly greeted: Promise<Greeting>;
  readonly #exited: Promise<void>;
  /** Output of the host's shell before the greeting. */
  #noise = '';
  #stderr = '';
  /** Reason of the host's loss. */
  #loss: (Ending & { readonly kind: 'lost' }) | undefined;
  #refuse: (refusal: HostRefusal) => void = () => undefined;
  #becomeReady: (readiness: Readiness) => void = () => undefined;
  #finished: () => void = () => undefined;
  readonly #failure: Promise<never>;
  #liveness: Liveness | undefined;
  #isGreeted = false;
  #isFinished = false;
  #stopWaiting: () => void = () => undefined;
  readonly #input: InputOfRankZero | undefined;
  #states: readonly RankState[] = [];

  /** Starts ssh in a session of its own, so that a terminal's Ctrl-C reaches the ranks through it and does not end it. */
  constructor(
    host: string,
    ranks: RankRange,
    command: readonly [string, ...string[]],
    programs: RemotePrograms,
    output: OutputSinks,
  ) {
    this.host = host;
    this.#programs = programs;
    const [file, ...args] = command;
    const ssh = spawn(file, args, { detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#ssh = ssh;
    this.#toAgent = ssh.stdin;
    this.ranks = Array.from({ length: ranks.count }, (_, i) => new RemoteRank(ranks.first + i, host, output));
    this.#input = ranks.first === 0 ? new InputOfRankZero(ssh.stdin) : undefined;
    this.#failure = new Promise((_, reject) => (this.#refuse = reject));
    this.#failure.catch(() => undefined);
    ssh.stdin.on('error', () => undefined);
    ssh.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT_CHARACTERS);
    });
    ssh.stderr.on('error', () => undefined);
    this.greeted = Promise.race([this.#greeting(ssh.stdout), this.#failure]);
    this.greeted.catch(() => undefined);
    this.#exited = new Promise((resolve) => {
      ssh.once('error', (error) => {
        this.#refuse(new HostRefusal(`${file} could not be started for host ${host}: ${error.message}`, 1));
        resolve();
      });
      // Its pipes may stay open longer: a shared connection (ControlPersist) holds them.
      ssh.once('exit', (exitCode, signal) => {
        void this.#lookAtEnd(exitCode, signal).finally(resolve);
      });
    });
  }

  /** Sends the agent its preparation. Rejects with a HostRefusal. */
  async prepare(preparation: Preparation): Promise<Readiness> {
    const ready = new Promise<Readiness>((resolve) => (this.#becomeReady = resolve));
    this.#send(preparation);
    this.#liveness = new Liveness(
      preparation.heartbeatMs,
      () => this.#send({ type: 'alive' }),
      () => this.#lose(`has not answered for ${preparation.heartbeatMs / 1000} s`),
    );
    return Promise.race([ready, this.#failure]);
  }

  start(meetingPoint: MeetingPoint): void {
    this.#send({ type: 'start', meetingPoint });
    this.#input?.start();
  }

  states(): readonly RankState[] {
    return this.#states;
  }

  signal(signal: NodeJS.Signals): void {
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') this.#liveness?.suspend(signal === 'SIGSTOP');
    this.#send({ type: 'signal', signal });
    if (signal !== 'SIGKILL') return;
    this.#stopWaiting();
    this.#stopWaiting = afterWatching(KILLED_MS, () => this.#lose(`has not ended its ranks within ${KILLED_MS / 1000} s`), {
      ref: false,
    });
  }

  async finish(): Promise<void> {
    this.#input?.stop();
    if (this.#loss === undefined) {
      const finished = new Promise<void>((resolve) => (this.#finished = resolve));
      this.#send({ type: 'finish' });
      await Promise.race([finished, this.#exited]);
    }
    await this.close();
  }

  /** Ends ssh, and with it the agent. */
  async close(): Promise<void> {
    this.#isFinished = true;
    this.#stopWaiting();
    this.#liveness?.stop();
    this.#input?.stop();
    this.#toAgent.end();
    if (!this.#isGreeted) this.#ssh.kill('SIGKILL');
    const isOver = await Promise.race([this.#exited.then(() => true), sleep(SSH_ENDS_MS, { ref: false }).then(() => false)]);
    if (!isOver) this.#ssh.kill('SIGKILL');
    await this.#exited;
    // A shared connection of ssh may hold these.
    for (const stream of [this.#ssh.stdout, this.#ssh.stderr]) stream?.destroy();
  }

  /** Reads the greeting, after any output of the host's shell, then frames. */
  #greeting(stdout: Readable): Promise<Greeting> {
    return new Promise((resolve, reject) => {
      let noise = Buffer.alloc(0);
      let frames: FrameReader | undefined;
      stdout.on('error', () => undefined);
      stdout.on('data', (chunk: Buffer) => {
        try {
          if (frames !== undefined) {
            frames.push(chunk);
            return;
          }
          noise = Buffer.concat([noise, chunk]);
          this.#noise = noise.toString('latin1').slice(-KEPT_CHARACTERS);
          const mark = noise.indexOf(`\n${GREETING_MARK}`);
          const end = noise.indexOf('\n', mark + 1);
          if (mark < 0 || end < 0) return;
          const greeting = JSON.parse(noise.toString('utf8', mark + 1 + GREETING_MARK.length, end)) as Greeting;
          if (greeting.version !== version) {
            const text = `host ${this.host} has tccl ${printable(greeting.version)}, and this host ${version}: install one version on both`;
            reject(new HostRefusal(text, 1));
            return;
          }
          frames = new FrameReader((kind, payload) => this.#take(kind, payload));
          this.#isGreeted = true;
          resolve(greeting);
          frames.push(noise.subarray(end + 1));
        } catch (error) {
          const text = `host ${this.host}: ${(error as Error).message}`;
          if (frames === undefined) reject(new HostRefusal(text, 1));
          else this.#lose(`wrote something other than tccl's agent does: a program there writes to the connection`);
        }
      });
    });
  }

  #take(kind: number, payload: Buffer): void {
    this.#liveness?.received();
    if (kind !== frameKinds.control) {
      this.#rank(payload.readUInt32BE())?.write(kind === frameKinds.stdout ? 'stdout' : 'stderr', payload.subarray(4), () =>
        this.#send({ type: 'written', bytes: payload.length - 4 }),
      );
      return;
    }
    const message = JSON.parse(payload.toString()) as ToLauncher;
    switch (message.type) {
      case 'ready':
        this.#becomeReady({ address: message.address });
        return;
      case 'refused': {
        const reason = printable(message.message);
        this.#refuse(new HostRefusal(`host ${this.host}: ${reason}`, message.exitCode, reason));
        this.#endRanks({ kind: 'lost', reason: `host ${this.host}: ${reason}` });
        return;
      }
      case 'ended':
        this.#rank(message.rank)?.end(message.ending);
        return;
      case 'sent':
        this.#rank(message.rank)?.closeOutput();
        return;
      case 'taken':
        this.#input?.taken(message.bytes);
        return;
      case 'finished':
        this.#finished();
        return;
      case 'alive':
        this.#states = message.states;
        return;
    }
  }

  #rank(rank: number): RemoteRank | undefined {
    return this.ranks[rank - (this.ranks[0]?.rank ?? 0)];
  }

  /** Handles the end of ssh: a refusal before the greeting, a loss afterwards. */
  async #lookAtEnd(exitCode: number | null, signal: NodeJS.Signals | null): Promise<void> {
    // Its last output may still be in the pipes.
    const { stdout, stderr } = this.#ssh;
    const drained = Promise.all([stdout, stderr].map(closed));
    await Promise.race([drained, sleep(DRAIN_MS, { ref: false })]);
    const text = explainFailedStart(
      { host: this.host, exitCode, signal, stdout: this.#noise, stderr: this.#stderr },
      this.#programs,
    );
    this.#refuse(new HostRefusal(text, 1));
    const last = this.#stderr.trim().split('\n').at(-1)?.trim() ?? '';
    const end = signal === null ? `ended with exit code ${exitCode ?? 0}` : `was killed by ${signal}`;
    this.#lose(`is lost: ${wayName(this.#programs)} ${end}${last === '' ? '' : ` (${printable(last.replace(/\.$/, ''))})`}`);
  }

  /** Gives the host up. Its agent ends the ranks there when it detects the loss. */
  #lose(how: string): void {
    if (this.#isFinished || this.#loss !== undefined) return;
    const ranks = this.ranks.filter((rank) => rank.running).map(({ rank }) => rank);
    this.#loss = {
      kind: 'lost',
      reason: `host ${this.host} ${how}${ranks.length === 0 ? '' : `, and with it ${nameRanks(ranks)}`}`,
    };
    this.#liveness?.stop();
    this.#refuse(new HostRefusal(this.#loss.reason, 1));
    this.#endRanks(this.#loss);
    this.#finished();
    this.#ssh.kill('SIGKILL');
  }

  #endRanks(ending: Ending): void {
    for (const rank of this.ranks) {
      rank.end(ending);
      rank.closeOutput();
    }
  }

  #send(message: ToAgent): void {
    if (this.#toAgent.writable) writeControl(this.#toAgent, message);
  }
}

async function closed(stream: Readable | null): Promise<void> {
  if (stream !== null && !stream.closed) await new Promise((resolve) => stream.once('close', resolve));
}

/** Time for reading the last output of ssh after its end, milliseconds. */
const DRAIN_MS = 1000;

/** A rank on another host. */
class RemoteRank implements RunningRank {
  readonly ended: Promise<Ending>;
  readonly delivered: Promise<unknown>;
  #running = true;
  #end: (ending: Ending) => void = () => undefined;
  readonly #streams: Readonly<Record<OutputStream, ReceivedStream>>;

  constructor(
    readonly rank: number,
    readonly host: string,
    output: OutputSinks,
  ) {
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.#streams = { stdout: new ReceivedStream(), stderr: new ReceivedStream() };
    this.delivered = Promise.all(
      (['stdout', 'stderr'] as const).map((stream) => output.take(rank, stream, this.#streams[stream])),
    );
  }

  get running(): boolean {
    return this.#running;
  }

  end(ending: Ending): void {
    this.#running = false;
    this.#end(ending);
  }

  write(stream: OutputStream, chunk: Buffer, written: () => void): void {
    this.#streams[stream].receive(chunk, written);
  }

  closeOutput(): void {
    for (const stream of Object.values(this.#streams)) stream.finish();
  }
}

/** Bytes that came from another host, for a pipe. Its own buffer is bounded by the agent's window. */
class ReceivedStream extends Readable {
  readonly #waiting: { readonly chunk: Buffer; readonly written: () => void }[] = [];
  #wantsMore = false;
  #isOver = false;

  override _read(): void {
    this.#wantsMore = true;
    this.#pass();
  }

  receive(chunk: Buffer, written: () => void): void {
    this.#waiting.push({ chunk, written });
    this.#pass();
  }

  finish(): void {
    this.#isOver = true;
    this.#pass();
  }

  #pass(): void {
    while (this.#wantsMore) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#wantsMore = this.push(next.chunk);
      next.written();
    }
    if (this.#isOver && this.#waiting.length === 0) this.push(null);
  }
}

/** Sends the launcher's standard input to rank 0 on another host, as far as that has room. */
class InputOfRankZero {
  readonly #toAgent: Writable;
  #roomBytes = WINDOW_BYTES;
  #state: 'waiting' | 'reading' | 'over' = 'waiting';
  readonly #resume = () => this.start();

  constructor(toAgent: Writable) {
    this.#toAgent = toAgent;
  }

  /** A background job that read from its terminal would be stopped: it reads when it comes to the foreground. */
  start(): void {
    if (this.#state !== 'waiting') return;
    if (process.stdin.isTTY && !isForegroundJob()) {
      process.once('SIGCONT', this.#resume);
      return;
    }
    this.#state = 'reading';
    process.stdin.on('data', (chunk: Buffer) => {
      if (this.#state !== 'reading') return;
      this.#roomBytes -= chunk.length;
      writeFrame(this.#toAgent, frameKinds.input, chunk);
      if (this.#roomBytes <= 0) process.stdin.pause();
    });
    for (const event of ['end', 'error']) process.stdin.once(event, () => this.#end());
  }

  taken(bytes: number): void {
    this.#roomBytes += bytes;
    if (this.#roomBytes > 0 && this.#state === 'reading') process.stdin.resume();
  }

  /** Stops reading, so that this process can end. */
  stop(): void {
    process.off('SIGCONT', this.#resume);
    if (this.#state === 'reading') process.stdin.destroy();
    this.#state = 'over';
  }

  #end(): void {
    if (this.#state !== 'reading' || !this.#toAgent.writable) return;
    this.#state = 'over';
    writeFrame(this.#toAgent, frameKinds.input);
  }
}
