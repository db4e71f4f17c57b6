/**
 * A rank of a comparison of algorithms; its argument is the options as JSON. Rank 0 prints the results as JSON lines; a rank that
 * fails prints a line with the error.
 *
 * @module
 */
import { init } from '../runtime/init/init.js';
import { type TimingOptions, type Failure, timeAlgorithms } from './algorithm-times.js';

try {
  const comm = await init({ onWarning: () => undefined });
  await timeAlgorithms(comm, JSON.parse(process.argv[2] ?? '{}') as TimingOptions, (result) => {
    if (comm.rank === 0) process.stdout.write(`${JSON.stringify(result)}\n`);
  });
  await comm.close();
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: (error as Error).message } satisfies Failure)}\n`);
  process.exitCode = 1;
}
