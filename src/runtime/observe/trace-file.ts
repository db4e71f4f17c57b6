import { writeFileSync } from '#platform/files';
import { callArguments, nameOf, type Call } from '../algorithms/call.js';
import type { Operation } from '../algorithms/operation.js';
import { TcclError } from '../../errors.js';
import { appendTo, notWritable, type Appending } from './append-file.js';
import { onExit } from '../exit.js';
import { clearTimeout, hostClockNs, hostname, setTimeout, type Timer } from '../platform/platform.js';
import type { Observer } from './observed-engine.js';

/** Events are buffered until they have this many characters, and written together … */
const KEPT_CHARACTERS = 65_536;
/** … or for at most this long, so that the trace of a hung job shows the ranks' calls when the job is killed. */
const KEPT_US = 200_000;

/**
 * Writes a rank's operations as events of Chrome's trace format, which Perfetto (ui.perfetto.dev), chrome://tracing and
 * speedscope open. A process is a host, a track is a rank, and a slice is a collective or one of its steps. Messages, groups and
 * windows, several of which may run at a time, are asynchronous events.
 *
 * A collective is two events, its beginning and its end, so that one that never ended is visible too; its steps are written
 * between them.
 *
 * All ranks of a host append to one file. The format is a JSON array whose last bracket may be missing, because no rank knows
 * whether it is the last to write.
 */
export class TraceFile implements Observer {
  readonly #file: Appending;
  readonly #stopExit: () => void;
  readonly #pid: number;
  readonly #tid: number;
  readonly #name: string;
  #kept = '';
  /** Time since which the oldest event is buffered. */
  #keptSince = 0;
  /** Writes the buffer after a time without further events. */
  #timer: Timer | undefined;
  /** Id of both events of the call in flight: viewers pair them by it. */
  #call: { readonly name: string; readonly cat: string; readonly args: object } | undefined;
  #stepBegan = 0;
  #steps = 0;

  /**
   * @param path where the first rank of each host begins a new file; ranks that open it later append
   * @param track numbers of its host and of itself, which viewers show as a process and a thread, and its name
   * @throws SystemError `FILE` when the file cannot be written
   */
  constructor(
    path: string,
    { isFirst, host, id, name }: { readonly isFirst: boolean; readonly host: number; readonly id: number; readonly name: string },
  ) {
    this.#pid = host;
    this.#tid = id;
    this.#name = name;
    const what = 'the trace (TCCL_TRACE)';
    try {
      if (isFirst)
        writeFileSync(path, `[\n${JSON.stringify({ name: 'process_name', ph: 'M', pid: host, args: { name: hostname() } })}`);
    } catch (cause) {
      throw notWritable(path, what, cause);
    }
    this.#file = appendTo(path, what);
    // Buffered until the first event: the rank that begins the file may not have done so yet.
    this.#kept =
      this.#line({ name: 'thread_name', ph: 'M', args: { name } }) +
      this.#line({ name: 'thread_sort_index', ph: 'M', args: { sort_index: id } });
    this.#stopExit = onExit(this.#write);
  }

  began(call: Call, number: number): void {
    const now = nowUs();
    this.#call = { name: nameOf(call), cat: 'collective', args: { number, ...callArguments(call) } };
    this.#event(now, { ...this.#call, ph: 'B', ts: now });
    this.#steps = 0;
    this.#stepBegan = now;
  }

  advanced(): void {
    const now = nowUs();
    this.#event(now, { name: `step ${++this.#steps}`, cat: 'step', ph: 'X', ts: this.#stepBegan, dur: now - this.#stepBegan });
    this.#stepBegan = now;
  }

  waits(): void {
    this.#writeInTime(nowUs());
  }

  ended(): void {
    this.#end();
  }

  beganBeside(operation: Operation, number: number): (error?: Error) => void {
    const event = { name: `${this.#name}: ${operation.name}`, cat: 'operation', id: `${this.#tid}.${number}` };
    const began = nowUs();
    this.#event(began, { ...event, ph: 'b', ts: began, args: { number, ...operation.args } });
    return (error) => {
      const ended = nowUs();
      this.#event(ended, {
        ...event,
        ph: 'e',
        ts: ended,
        args: error === undefined ? {} : { error: error instanceof TcclError ? error.code : error.message },
      });
    };
  }

  failed(error: TcclError): void {
    this.#end({ error: error.code });
  }

  closed(): void {
    this.#write();
    this.#stopExit();
    this.#file.close();
  }

  #end(more: object = {}): void {
    const call = this.#call;
    if (call === undefined) return;
    this.#call = undefined;
    const now = nowUs();
    this.#event(now, { ...call, ph: 'E', ts: now, args: { ...call.args, ...more } });
  }

  #event(now: number, event: object): void {
    this.#kept += this.#line(event);
    if (this.#keptSince === 0) {
      this.#keptSince = now;
      this.#timer = setTimeout(this.#write, KEPT_US / 1000).unref();
    }
    if (this.#kept.length >= KEPT_CHARACTERS) this.#write();
    else this.#writeInTime(now);
  }

  #line(event: object): string {
    return `,\n${JSON.stringify({ ...event, pid: this.#pid, tid: this.#tid })}`;
  }

  #writeInTime(now: number): void {
    if (this.#keptSince > 0 && now - this.#keptSince >= KEPT_US) this.#write();
  }

  /** One write, so that the events of several ranks do not mix. */
  readonly #write = (): void => {
    clearTimeout(this.#timer);
    this.#keptSince = 0;
    if (this.#kept !== '') this.#file.append(this.#kept);
    this.#kept = '';
  };
}

/**
 * The same clock in all processes of a host, in eighths of a microsecond, which numbers represent exactly: when a viewer adds
 * a duration to a time, the result is exactly the time at which the next slice begins.
 */
function nowUs(): number {
  return Number(hostClockNs() / 125n) / 8;
}
