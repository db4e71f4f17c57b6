import { threadId } from '#platform/threads';
import { describeCall, nameOf, type Call } from '../algorithms/call.js';
import type { Operation } from '../algorithms/operation.js';
import type { TcclError } from '../../errors.js';
import { printable } from '../../printable.js';
import { appendTo, type Appending, fileNamed } from './append-file.js';
import { debugLevels, type DebugLevel, type DebugSettings, type DebugSubsystem } from './debug-settings.js';
import type { Observer } from './observed-engine.js';
import { hostname } from '../platform/platform.js';

/** The communicator of a log. */
export interface LoggedCommunicator {
  /** Distinguishes it from others of this job, like NCCL's address. */
  readonly address: string;
  readonly rank: number;
  readonly nRanks: number;
  /** The local rank, which takes the place of the device in NCCL's lines. */
  readonly device: number;
}

/** Log lines in NCCL's format: `host:pid:thread [device] TCCL INFO …`. */
export class DebugLog implements Observer {
  readonly #settings: DebugSettings;
  readonly #communicator: LoggedCommunicator;
  readonly #prefix: string;
  readonly #file: Appending | undefined;
  #failed = false;

  /** @throws SystemError `FILE` when the file cannot be written */
  constructor(settings: DebugSettings, communicator: LoggedCommunicator) {
    const { device } = communicator;
    this.#settings = settings;
    this.#communicator = communicator;
    this.#prefix = `${hostname()}:${process.pid}:${process.pid + threadId} [${device}] TCCL`;
    this.#file = settings.file === undefined ? undefined : openFile(settings.file);
  }

  info(subsystem: DebugSubsystem, text: string): void {
    if (this.#atLeast('INFO') && this.#settings.subsystems.has(subsystem)) this.#line('INFO', text);
  }

  warn(text: string): void {
    if (this.#atLeast('WARN')) this.#line('WARN', text);
  }

  version(text: string): void {
    if (this.#atLeast('VERSION')) this.#write(`${text}\n`);
  }

  began(call: Call, number: number): void {
    this.info('COLL', `${nameOf(call)}: opCount ${number.toString(16)} ${describeCall(call)} ${this.#where()}`);
  }

  beganBeside({ name, text }: Operation, number: number): () => void {
    this.info('COLL', `${name}: opCount ${number.toString(16)} ${text} ${this.#where()}`);
    return this.ended;
  }

  advanced(): void {
    // Steps are only in the trace.
  }

  waits(): void {
    // Nothing to do: lines are written immediately.
  }

  readonly ended = (): void => {
    // Nothing to do: the next line is the next call's.
  };

  noted(text: string): void {
    this.info('GRAPH', text);
  }

  failed(error: TcclError): void {
    this.#failed = true;
    this.warn(`${error.code}: ${error.message}`);
  }

  closed(): void {
    const { address, rank, nRanks, device } = this.#communicator;
    this.info(
      'INIT',
      `comm ${address} rank ${rank} nranks ${nRanks} cudaDev ${device} busId ${device.toString(16)} - ${this.#failed ? 'Abort' : 'Destroy'} COMPLETE`,
    );
    this.#file?.close();
  }

  #where(): string {
    return `comm ${this.#communicator.address} [nranks=${this.#communicator.nRanks}]`;
  }

  #atLeast(level: DebugLevel): boolean {
    return debugLevels.indexOf(this.#settings.level) >= debugLevels.indexOf(level);
  }

  #write(text: string): void {
    if (this.#file === undefined) process.stdout.write(text);
    else this.#file.append(text);
  }

  #line(level: 'INFO' | 'WARN', text: string): void {
    this.#write(`${printable(`${this.#prefix} ${level} ${text}`)}\n`);
  }
}

function openFile(pattern: string): Appending {
  return appendTo(fileNamed(pattern, { '%p': String(process.pid) }), 'the log (TCCL_DEBUG_FILE)');
}
