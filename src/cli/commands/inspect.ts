import { type Command, Option } from 'commander';
import { examples } from '../output.js';
import { duration } from '../times.js';
import type { InspectOptions } from '../inspect/show.js';

/** Default of `--stuck-after`. */
const STUCK_MS = 5000;

/** `tccl inspect`: running jobs of tccl's own ranks. */
export function register(program: Command): void {
  program
    .command('inspect')
    .description('look into a running job of tccl: which rank waits for which, in which call, since when')
    .argument('[job]', 'start of the id of a job, or the process of a rank or of its launcher (default: all jobs of this user)')
    .option('--watch', 'look again and again, until the job has ended')
    .addOption(
      new Option('--every <time>', 'time between looks of --watch and --prometheus').argParser(duration).default(2000, '2s'),
    )
    .addOption(
      new Option('--stuck-after <time>', 'a job is stuck when a rank has waited without progress for so long')
        .argParser(duration)
        .default(STUCK_MS, `${STUCK_MS / 1000}s`),
    )
    .option('--command <template>', 'run this for the report of another host; {host} is its name (default: ssh, see below)')
    .option('--report <files...>', 'read what --here printed on hosts that cannot be asked')
    .option('--record <folder>', 'write the last 2,000 calls of each rank there, a file a rank, for tccl diagnose')
    .addOption(new Option('--calls', 'with --here: the last calls, too').hideHelp())
    .option('--here', 'print only the report of this host, as JSON without a verdict')
    .option('--prometheus <address>', 'serve the states of jobs and ranks at /metrics of :PORT or HOST:PORT')
    .option('--json', 'print the result as a line of JSON')
    .addHelpText(
      'after',
      `${examples(
        ['the jobs of this user on this host', 'tccl inspect'],
        ['the job of one process, until it ends', 'tccl inspect 4711 --watch'],
        [
          'a job in Kubernetes: another way to its hosts',
          "tccl inspect --command 'kubectl exec {host} -- npx tccl inspect --here'",
        ],
        ['what each rank did last, and a verdict from that', 'tccl inspect --record calls && tccl diagnose calls'],
        ['for a script: exit code 1 when a job is stuck', 'tccl inspect --stuck-after 1m --json'],
        ['numbers for Prometheus', 'tccl inspect --prometheus :9401'],
      )}\nRanks that are stopped or compute are shown like any other: tccl inspect reads memory that they share, and sends them nothing. Other hosts are asked by \`ssh HOST tccl inspect --here\`, with TCCL_SSH in place of ssh if that is set.
Exit codes: 0 no job is stuck; 1 a job is stuck; 2 wrong use, or no job.`,
    )
    .action(async (job: string | undefined, options: InspectOptions) => {
      const { inspectJobs } = await import('../inspect/show.js');
      process.exitCode = await inspectJobs(job, options);
    });
}
