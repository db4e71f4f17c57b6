import { InvalidArgumentError } from '../../errors.js';
import { clockMs } from '../platform/platform.js';
import { canBeSent, packThrown, type TaskResults, type Tasks } from './pool-messages.js';

/** Runs the tasks of a message one after the other, until one fails or the map is stopped, and sends their results. */
export async function runTasks(
  exported: Readonly<Record<string, unknown>>,
  tasks: Tasks,
  send: (results: TaskResults) => void,
): Promise<void> {
  const results = await resultsOf(exported[tasks.name] as Task, tasks);
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

async function resultsOf(task: Task, { first, items, stop }: Tasks): Promise<TaskResults> {
  const begin = clockMs();
  const values: unknown[] = [];
  let failed: TaskResults['failed'];
  for (const [i, item] of items.entries()) {
    if (Atomics.load(stop, 0) === 1) break;
    try {
      const value = task(item, first + i);
      // A result that is there costs no turn.
      values.push(value instanceof Promise ? await value : value);
    } catch (error) {
      failed = packThrown(error);
      break;
    }
  }
  return { kind: 'results', first, values, failed, ms: clockMs() - begin };
}
