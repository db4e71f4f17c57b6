import { InvalidArgumentError } from '../../errors.js';
import { clockMs } from '../platform/platform.js';
import { canBeSent, packThrown, type TaskResults, type Tasks } from './pool-messages.js';

/**
 * Runs the tasks of a message one after the other, until one fails or the map is stopped, and sends their results.
 * @param world a communicator, whose methods a task may want
 */
export async function runTasks(
  exported: Readonly<Record<string, unknown>>,
  tasks: Tasks,
  world: object,
  send: (results: TaskResults) => void,
): Promise<void> {
  const results = await resultsOf(exported[tasks.name] as Task, tasks, world);
  try {
    send(results);
  } catch (cause) {
    const { values, first } = results;
    const bad = values.findIndex((value) => !canBeSent(value));
    const text = `the result of ${tasks.name} cannot be copied: ${(cause as Error).message}`;
    const failed = packThrown(new InvalidArgumentError('ARGUMENT_TYPE', text));
    send({ ...results, first, values: values.slice(0, bad), failed });
  }
}

type Task = (item: unknown, index: number) => unknown;

async function resultsOf(task: Task, { first, items, stop, at }: Tasks, world: object): Promise<TaskResults> {
  const begin = clockMs();
  const values: unknown[] = [];
  let failed: TaskResults['failed'];
  let wantsCommunicator = false;
  for (const [i, item] of items.entries()) {
    if (Atomics.load(stop, 0) === 1) break;
    Atomics.store(at, 0, first + i);
    try {
      const value = task(item, first + i);
      // A result that is there costs no turn.
      values.push(value instanceof Promise ? await value : value);
    } catch (error) {
      failed = packThrown(error);
      wantsCommunicator = error instanceof TypeError && isMethodOf(world, error);
      break;
    }
  }
  Atomics.store(at, 0, -1);
  return { kind: 'results', first, values, failed, wantsCommunicator, ms: clockMs() - begin };
}

/** True for `comm.allReduce is not a function`, unless the method may be that of a text, as `split` is. */
function isMethodOf(world: object, { message }: TypeError): boolean {
  const method = /\.(\w+) is not a function/.exec(message)?.[1];
  return method !== undefined && method in world && !(method in String.prototype);
}
