/**
 * A rank of a contest, as contest-launch.ts starts it: its argument is the options as JSON. Rank 0 prints the standings
 * as JSON lines.
 *
 * @module
 */
import { init } from '../communicator/init.js';
import { type ContestOptions, runContest } from './contest.js';

try {
  const comm = await init();
  await runContest(comm, JSON.parse(process.argv[2] ?? '{}') as ContestOptions, (standing) => {
    if (comm.rank === 0) process.stdout.write(`${JSON.stringify(standing)}\n`);
  });
  await comm.close();
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
