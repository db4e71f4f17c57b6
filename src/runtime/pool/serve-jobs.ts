import { InvalidArgumentError, RemoteError } from '../../errors.js';
import type { Communicator } from '../communicator/communicator.js';
import type { PoolJobs } from '../init/pool-jobs.js';
import { setImmediate } from '../platform/platform.js';
import { packThrown, type FromPoolRank, type ToPoolRank } from './pool-messages.js';
import { runTasks } from './run-tasks.js';

/** Allocations of jobs after which their arrays are collected at the end of one: more than that takes. */
const COLLECTED_BYTES = 16 * 2 ** 20;

interface JobServer {
  /** Functions by name. */
  readonly exported: Readonly<Record<string, unknown>>;
  readonly jobs: PoolJobs;
  /** Outlives failed jobs, which end only the communicator that they were given. */
  readonly world: Communicator;
  readonly send: (message: FromPoolRank) => void;
  /** Receives messages. The pool begins a job after the one before has ended on all ranks. */
  readonly receive: (listener: (message: ToPoolRank) => void) => void;
  /** Called when the communicators are closed. */
  readonly end: () => void;
}

/** Runs the jobs of a pool on this rank. */
export async function serveJobs({ exported, jobs, world, send, receive, end }: JobServer): Promise<void> {
  let comm = await world.split(0);
  /** The batches of a map come before the one before has ended. */
  let tasks = Promise.resolve();
  receive((message) => {
    // An error here is a defect and ends the thread, as an unhandled rejection does.
    if (message.kind === 'tasks') tasks = tasks.then(() => runTasks(exported, message, world, send));
    else void (message.kind === 'run' ? run(message) : close());
  });
  send({ kind: 'ready', names: Object.keys(exported).filter((name) => typeof exported[name] === 'function') });

  async function run({ number, name, args, afterFailure }: ToPoolRank & { readonly kind: 'run' }): Promise<void> {
    if (afterFailure) {
      await comm.close();
      comm = await world.split(0);
    }
    jobs.begin(number);
    let value: unknown;
    try {
      value = await (exported[name] as (comm: Communicator, ...args: readonly unknown[]) => unknown)(comm, ...args);
      jobs.returned(number);
      world.keepArraysIn(value);
      sendResult(name, value);
      setImmediate(() => world.collectArrays(COLLECTED_BYTES));
    } catch (thrown) {
      const error = whyReturned(thrown, name);
      const isConsequence = error instanceof RemoteError && error.rank !== undefined && error.rank !== comm.rank;
      send({ kind: 'failed', error: packThrown(error), isConsequence });
      // Ends the calls of ranks that wait for this one.
      comm.abort(`${name} failed: ${error instanceof Error ? error.message : String(error)}`);
      jobs.failed(number);
    }
  }

  /** Names the end of a rank whose function has returned: it has not closed its communicator. */
  function whyReturned(error: unknown, name: string): unknown {
    if (error instanceof RemoteError && error.code === 'CLOSED')
      error.message = error.message.replace('closed its communicator or exited', `returned from ${name}`);
    return error;
  }

  function sendResult(name: string, value: unknown): void {
    try {
      send({ kind: 'done', value, isOver: !comm.isUsable });
    } catch (cause) {
      const what = (cause as Error).message;
      throw new InvalidArgumentError('ARGUMENT_TYPE', `run: the result of ${name} cannot be copied: ${what}`, { cause });
    }
  }

  async function close(): Promise<void> {
    await comm.close();
    await world.close();
    end();
  }
}
