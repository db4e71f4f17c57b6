import { fstatSync } from '#platform/files';
import { Socket, createInterface } from '#platform/streams';
import { InvalidUsageError, SystemError, TimeoutError } from '../../errors.js';
import { afterWatching } from '../progress/watch-clock.js';
import type { WaitOptions, Placement } from './placement.js';
import { onAbort } from '../abort-signals.js';

const KEY = 'tccl-id';
let isUsed = false;

/**
 * Passes a text from rank 0 to all ranks through version 1 of PMI, the process management interface of MPICH's launcher (and
 * Intel MPI's): lines of `name=value` on a socket that each rank inherits. Rank 0 puts the text into the job's key-value
 * store, all ranks meet in its barrier, and all read it.
 *
 * A process can do this once: the launcher closes its end after `finalize`. Without `finalize` it would treat the exit of a
 * rank as a failure.
 *
 * @throws InvalidUsageError `UNSUPPORTED` the second time, `ENVIRONMENT` when the socket did not come here, SystemError
 *   `LAUNCH` when the launcher refuses,
 *   TimeoutError `RANK_MISSING`
 */
export async function passThroughPmi(
  fd: number,
  { rank, nRanks }: Placement,
  make: () => Promise<string>,
  { timeoutMs, signal }: WaitOptions,
): Promise<string> {
  if (isUsed) {
    throw new InvalidUsageError(
      'UNSUPPORTED',
      'this launcher lets ranks meet only once: for a second init(), export TCCL_COMM_ID=HOST:PORT with the host of rank 0 and a free port there',
      { rank },
    );
  }
  if (!isSocket(fd)) {
    throw new InvalidUsageError(
      'ENVIRONMENT',
      `PMI_FD=${fd} is no connection to the launcher here: something between mpiexec and this process, as npx, has closed it; start this process with \`node\` itself, or export TCCL_COMM_ID=HOST:PORT with the host of rank 0 and a free port there`,
      { rank },
    );
  }
  isUsed = true;
  const pmi = new PmiSocket(fd);
  const stopWaiting = afterWatching(timeoutMs, () =>
    pmi.destroy(
      new TimeoutError(
        'RANK_MISSING',
        `rank ${rank} waited ${timeoutMs} ms for all ${nRanks} ranks to call init(), but not all did`,
      ),
    ),
  );
  const stopListening = onAbort(signal, () => pmi.destroy(signal?.reason as Error));
  try {
    signal?.throwIfAborted();
    await pmi.call('cmd=init pmi_version=1 pmi_subversion=1', 'response_to_init');
    const store = (await pmi.call('cmd=get_my_kvsname', 'my_kvsname')).get('kvsname') ?? '';
    if (rank === 0) await pmi.call(`cmd=put kvsname=${store} key=${KEY} value=${await make()}`, 'put_result');
    await pmi.call('cmd=barrier_in', 'barrier_out');
    const text = (await pmi.call(`cmd=get kvsname=${store} key=${KEY}`, 'get_result')).get('value') ?? '';
    await pmi.call('cmd=finalize', 'finalize_ack');
    return text;
  } finally {
    stopWaiting();
    stopListening();
    pmi.destroy();
  }
}

/** True if the descriptor is the launcher's socket: otherwise it may be one of Node's own, which must not be closed. */
function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket();
  } catch {
    return false;
  }
}

/** A connection with one request and one answer at a time. */
class PmiSocket {
  readonly #socket: Socket;
  #answer: { resolve(line: string): void; reject(error: Error): void } | undefined;

  constructor(fd: number) {
    this.#socket = new Socket({ fd, readable: true, writable: true });
    // The interface forwards errors of the socket, which has a listener of its own.
    createInterface({ input: this.#socket })
      .on('line', (line) => this.#answer?.resolve(line))
      .on('error', () => undefined);
    this.#socket.on('error', (error) => this.#answer?.reject(error));
    this.#socket.on('close', () => this.#answer?.reject(new SystemError('LAUNCH', 'the launcher closed its PMI connection')));
  }

  /** Sends a request and returns the fields of the answer, which must be of the kind `expected` and report success. */
  async call(question: string, expected: string): Promise<Map<string, string>> {
    const line = await new Promise<string>((resolve, reject) => {
      this.#answer = { resolve, reject };
      this.#socket.write(`${question}\n`);
    });
    const fields = new Map(
      line
        .trim()
        .split(' ')
        .map((field): [string, string] => {
          const at = field.indexOf('=');
          return [field.slice(0, at), field.slice(at + 1)];
        }),
    );
    if (fields.get('cmd') !== expected || (fields.get('rc') ?? '0') !== '0') {
      throw new SystemError(
        'LAUNCH',
        `the launcher answered "${line}" to "${question.split(' ', 1).join()}" of PMI version 1; export TCCL_COMM_ID=HOST:PORT to do without`,
      );
    }
    return fields;
  }

  /** Rejects the pending request with `error`. */
  destroy(error?: Error): void {
    if (error !== undefined) this.#answer?.reject(error);
    this.#socket.destroy();
  }
}
