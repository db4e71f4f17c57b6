import { connect, type Socket } from 'node:net';
import { InputError, InvalidArgumentError, SystemError } from '../../errors.js';
import { type GivenReport, readReport } from '../../planner/readers/ras-report.js';
import { isHere, reasonHere } from './here.js';

/** The address at which a process of a job answers for RAS. */
export interface RasAddress {
  readonly host: string;
  readonly port: number;
}

/** NCCL's default for NCCL_RAS_ADDR. */
const DEFAULT_PORT = 28_028;
/** Largest report that is read: a rank takes some 600 bytes of JSON in each of its communicators. */
const MOST_BYTES = 256 * 2 ** 20;
/** Time beyond that of the collection, as `ncclras` gives. */
export const EXTRA_MS = 5000;

/**
 * `host`, `host:port`, `[address]:port`.
 *
 * @throws InvalidArgumentError where it is none of these
 */
export function rasAddress(text: string): RasAddress {
  const [, bracketed, bare, port] = /^(?:\[([^\]]+)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isAddress = bracketed === undefined && bare === undefined && /^[\da-f:.%]+$/i.test(text);
  const number = port === undefined ? DEFAULT_PORT : Number(port);
  if ((bracketed === undefined && bare === undefined && !isAddress) || number < 1 || number > 65_535)
    throw new InvalidArgumentError('ARGUMENT_TYPE', `'${text}' is no address: expected HOST, HOST:PORT or [ADDRESS]:PORT`);
  return { host: (isAddress ? text : (bracketed ?? bare)) || 'localhost', port: number };
}

export function addressText({ host, port }: RasAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Asks a process for the state of its job: in JSON, and in text where its NCCL knows no JSON. It sends nothing that changes the
 * job.
 *
 * @param seconds that RAS may take to collect
 * @throws SystemError where nothing answers, InputError where it is not RAS that answers
 */
export async function askRas(address: RasAddress, seconds: number, signal: AbortSignal): Promise<GivenReport> {
  const line = new Conversation(address, 1000 * seconds + EXTRA_MS, signal);
  try {
    await line.open();
    const greeting = await line.ask('CLIENT PROTOCOL 2');
    if (!/^SERVER PROTOCOL \d+/.test(greeting)) throw notRas(address, greeting);
    // Older versions answer that they do not know the command.
    await line.ask('SET FORMAT json');
    const timeout = await line.ask(`TIMEOUT ${seconds}`);
    if (timeout !== 'OK') throw notRas(address, timeout);
    const text = await line.askToEnd('VERBOSE STATUS');
    try {
      return readReport(text);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      throw new InputError(
        'CONTENT',
        `${addressText(address)}: the report is cut or damaged (${text.length} characters): it ${error.message}`,
      );
    }
  } finally {
    line.close();
  }
}

/**
 * Reports events of a job as NCCL 2.29.2 and newer send them, until the connection ends: `PEER_DEAD: Process 812 on node …`.
 *
 * @throws SystemError, InputError as {@link askRas} does
 */
export async function followRas(address: RasAddress, onEvent: (event: string) => void, signal: AbortSignal): Promise<void> {
  const line = new Conversation(address, EXTRA_MS, signal);
  try {
    await line.open();
    await line.ask('CLIENT PROTOCOL 2');
    // NCCL does not trim the list.
    if ((await line.ask('MONITOR lifecycle,trace')) !== 'OK') return;
    await line.follow((text) => {
      const event = /^\[[^\]]*\] (\w+: .*)$/.exec(text)?.[1];
      if (event !== undefined) onEvent(event);
    });
  } finally {
    line.close();
  }
}

/** Lines that go over one connection. */
class Conversation {
  readonly #address: RasAddress;
  readonly #limitMs: number;
  readonly #signal: AbortSignal;
  #socket: Socket | undefined;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #failure: Error | undefined;
  #hasEnded = false;
  #wake = (): void => undefined;

  constructor(address: RasAddress, limitMs: number, signal: AbortSignal) {
    this.#address = address;
    this.#limitMs = limitMs;
    this.#signal = signal;
  }

  async open(): Promise<void> {
    const { host, port } = this.#address;
    const socket = connect({ host, port });
    this.#socket = socket;
    // The option `signal` of connect() leaves its listener when the socket has closed.
    const abort = () => void socket.destroy(new SystemError('NETWORK', `${addressText(this.#address)}: the wait was ended`));
    if (this.#signal.aborted) abort();
    this.#signal.addEventListener('abort', abort, { once: true });
    socket.once('close', () => this.#signal.removeEventListener('abort', abort));
    socket.setTimeout(this.#limitMs, () => {
      const what = socket.connecting ? 'no connection' : 'no answer';
      socket.destroy(
        new SystemError(
          'TIMEOUT',
          `${addressText(this.#address)}: ${what} within ${this.#limitMs / 1000} s${socket.connecting ? ': a firewall drops packets, or the host is down' : ': the process is stopped, or it is not RAS that listens there'}`,
        ),
      );
    });
    socket.on('connect', () => this.#wake());
    socket.on('data', (piece) => {
      this.#bytes += piece.length;
      if (this.#bytes > MOST_BYTES)
        socket.destroy(
          new InputError(
            'TOO_LARGE',
            `${addressText(this.#address)}: more than ${MOST_BYTES / 2 ** 20} MiB: that is no report of RAS`,
          ),
        );
      this.#pieces.push(piece);
      this.#wake();
    });
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#wake();
    });
    socket.on('error', (error) => {
      this.#failure = error instanceof SystemError || error instanceof InputError ? error : unreached(this.#address, error);
      this.#wake();
    });
    await this.#until(() => !socket.connecting);
  }

  /** Sends a command, and gets the line that answers it. */
  async ask(command: string): Promise<string> {
    this.#socket?.write(`${command}\n`);
    await this.#until(() => this.#hasEnded || this.#pieces.some((piece) => piece.includes(10)));
    const text = Buffer.concat(this.#pieces).toString('latin1');
    const end = text.indexOf('\n');
    if (end < 0)
      throw text === ''
        ? new SystemError(
            'NETWORK',
            `${addressText(this.#address)} closed the connection at once: its process has just ended, or it is not RAS that listens there`,
          )
        : notRas(this.#address, text);
    const rest = Buffer.from(text.slice(end + 1), 'latin1');
    this.#pieces = [rest];
    return text.slice(0, end).replace(/\r$/, '');
  }

  /** Sends a command, and gets all until the other end closes, which ends a report. */
  async askToEnd(command: string): Promise<string> {
    this.#socket?.write(`${command}\n`);
    await this.#until(() => this.#hasEnded);
    return Buffer.concat(this.#pieces).toString('utf8');
  }

  /** Gets lines for as long as the other end sends them, which may be silent for any time. */
  async follow(onLine: (line: string) => void): Promise<void> {
    this.#socket?.setTimeout(0);
    this.#socket?.setKeepAlive(true, EXTRA_MS);
    let rest = '';
    for (;;) {
      await this.#until(() => this.#hasEnded || this.#bytesWaiting() > 0);
      const lines = (rest + Buffer.concat(this.#pieces).toString('utf8')).split(/\r?\n/);
      this.#pieces = [];
      this.#bytes = 0;
      rest = lines.pop()?.slice(-1000) ?? '';
      for (const line of lines) onLine(line);
      if (this.#hasEnded) return;
    }
  }

  #bytesWaiting(): number {
    return this.#pieces.reduce((sum, { length }) => sum + length, 0);
  }

  close(): void {
    this.#socket?.destroy();
  }

  async #until(isDone: () => boolean): Promise<void> {
    while (this.#failure === undefined && !isDone()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#failure !== undefined) throw this.#failure;
  }
}

function notRas(address: RasAddress, answer: string): InputError {
  const shown = answer.length > 60 ? `${answer.slice(0, 60)}…` : answer;
  return new InputError('CONTENT', `${addressText(address)} answers, but not as NCCL's RAS does: '${shown}'`);
}

function unreached(address: RasAddress, error: NodeJS.ErrnoException): Error {
  const { code, message } = error;
  const where = addressText(address);
  const known = isHere(address.host) ? reasonHere(address.port) : undefined;
  if (known !== undefined) return new SystemError('NETWORK', `nothing listens at ${where}: ${known}`);
  if (code === 'ECONNREFUSED')
    return new SystemError(
      'NETWORK',
      `nothing listens at ${where}: no job with NCCL 2.24 or newer runs there, NCCL_RAS_ENABLE=0, its NCCL_RAS_ADDR differs, or it is in a container with a network of its own; \`--command\` asks from inside`,
    );
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return new SystemError('NETWORK', `the name ${address.host} does not resolve`);
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return new SystemError(
      'NETWORK',
      `${where} ended the connection: its process has just ended, or RAS of another user's job holds the port`,
    );
  return new SystemError('NETWORK', `${where} cannot be reached: ${message}`);
}
