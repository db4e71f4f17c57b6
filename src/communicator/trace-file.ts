import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { callArguments, type Call } from '../collectives/call.js';
import type { Operation } from '../collectives/operation.js';
import { TcclError } from '../errors.js';
import { appendTo, notWritable, type Appending } from './append-file.js';
import { onExit } from './exit.js';
import type { Observer } from './observed-engine.js';

/** Events are kept until they have so many characters, and written together. */
const KEPT_CHARACTERS = 65_536;

/**
 * What a rank's operations did when, as events of Chrome's trace format, which Perfetto (ui.perfetto.dev) and
 * chrome://tracing open: a process a host, a track a rank, a slice a collective with a slice in it for each step that
 * was seen, and what was called as its arguments. Messages, groups and windows, of which several may be under way at a
 * time, are asynchronous events: tracks of their own by rank and name.
 *
 * All ranks of a host append to one file. The format is that of a JSON array whose last bracket may be left out, since
 * no rank knows which is the last to write.
 */
export class TraceFile implements Observer {
  readonly #file: Appending;
  readonly #stopExit: () => void;
  readonly #pid: number;
  readonly #tid: number;
  readonly #name: string;
  #kept = '';
  /** The events of the steps of the call under way. */
  #keptSteps = '';
  #call: Call | undefined;
  #number = 0;
  #began = 0;
  #stepBegan = 0;
  #steps = 0;

  /**
   * @param path where the first rank of each host begins a new file; ranks that open it later append
   * @param track what the rank is called, and numbers that keep its track apart from others
   * @throws SystemError `FILE` when it cannot be written
   */
  constructor(path: string, { isFirst, host, id, name }: { readonly isFirst: boolean; readonly host: number; readonly id: number; readonly name: string }) {
    this.#pid = host;
    this.#tid = id;
    this.#name = name;
    const what = 'the trace (TCCL_TRACE)';
    try {
      if (isFirst) writeFileSync(path, `[\n${JSON.stringify({ name: 'process_name', ph: 'M', pid: host, args: { name: hostname() } })}`);
    } catch (cause) {
      throw notWritable(path, what, cause);
    }
    this.#file = appendTo(path, what);
    this.#event({ name: 'thread_name', ph: 'M', args: { name } });
    this.#event({ name: 'thread_sort_index', ph: 'M', args: { sort_index: id } });
    this.#stopExit = onExit(this.#flush);
  }

  began(call: Call, number: number): void {
    this.#call = call;
    this.#number = number;
    this.#steps = 0;
    this.#began = this.#stepBegan = nowUs();
  }

  advanced(): void {
    const now = nowUs();
    this.#keptSteps += this.#line({ name: `step ${++this.#steps}`, cat: 'step', ph: 'X', ts: this.#stepBegan, dur: between(this.#stepBegan, now) });
    this.#stepBegan = now;
  }

  ended(): void {
    this.#end({});
  }

  beganBeside(operation: Operation, number: number): (error?: Error) => void {
    const event = { name: `${this.#name}: ${operation.name}`, cat: 'operation', id: `${this.#tid}.${number}` };
    this.#event({ ...event, ph: 'b', ts: nowUs(), args: { number, ...operation.args } });
    return (error) => this.#event({ ...event, ph: 'e', ts: nowUs(), args: error === undefined ? {} : { error: error instanceof TcclError ? error.code : error.message } });
  }

  failed(error: TcclError): void {
    if (this.#call !== undefined) this.#end({ error: error.code });
  }

  closed(): void {
    this.#flush();
    this.#stopExit();
    this.#file.close();
  }

  /** Of slices that begin at the same time, viewers take the one that comes first for the one around the others. */
  #end(more: object): void {
    const call = this.#call;
    if (call === undefined) return;
    this.#event({
      name: call.kind, cat: 'collective', ph: 'X', ts: this.#began, dur: between(this.#began, nowUs()), args: { number: this.#number, ...callArguments(call), ...more },
    });
    this.#takeSteps();
    this.#call = undefined;
  }

  #takeSteps(): void {
    this.#kept += this.#keptSteps;
    this.#keptSteps = '';
  }

  #event(event: object): void {
    this.#kept += this.#line(event);
    if (this.#kept.length >= KEPT_CHARACTERS) this.#write();
  }

  #line(event: object): string {
    return `,\n${JSON.stringify({ ...event, pid: this.#pid, tid: this.#tid })}`;
  }

  /** Writes all there is, the steps of an unfinished call, too. */
  readonly #flush = (): void => {
    this.#takeSteps();
    this.#write();
  };

  /** One write, so that the events of several ranks don't mix. */
  #write(): void {
    if (this.#kept !== '') this.#file.append(this.#kept);
    this.#kept = '';
  }
}

/** A time between two others, to the digit that those have. */
function between(fromUs: number, toUs: number): number {
  return Math.round((toUs - fromUs) * 10) / 10;
}

/** The same clock in all processes of a host. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 100n) / 10;
}
