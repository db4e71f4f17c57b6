import { type Command, InvalidArgumentError, Option } from 'commander';
import { examples } from '../output.js';
import { atLeastOneSecond, duration } from '../times.js';
import { STUCK_MS } from '../../planner/log/live/recording.js';
import type { WatchOptions } from '../watch/show.js';

/** `tccl watch`: the state of running jobs, from NCCL's RAS. */
export function register(program: Command): void {
  program
    .command('watch')
    .description('look into a running job: which ranks lag, whether it moves, since when it stands still')
    .argument('[target...]', 'HOST, HOST:PORT or [ADDRESS]:PORT where NCCL answers (default: NCCL_RAS_ADDR, or localhost:28028)')
    .option('--command <template>', 'run this for a report instead of a connection; {host} is the target')
    .addOption(new Option('--every <time>', 'time between reports, at least 1s').argParser(atLeastOneSecond).default(5000, '5s'))
    .option('--samples <count>', 'end after this number of reports', count)
    .addOption(
      new Option('--stuck-after <time>', 'a job is stuck when it has launched nothing for so long')
        .argParser(duration)
        .default(STUCK_MS, `${STUCK_MS / 1000}s`),
    )
    .option('--until-stuck <time>', 'end with exit code 1 when a job has launched nothing for so long', duration)
    .addOption(
      new Option('--timeout <time>', 'time that RAS may take to collect').argParser(atLeastOneSecond).default(5000, '5s'),
    )
    .option('--inspector <path>', 'a file or folder that NCCL Inspector writes: it shows whether launched operations finish')
    .option('--cluster <cluster>', 'with --inspector: also print the expected time of the operation that ranks wait in')
    .option('--nodes <count>', 'number of hosts of --cluster')
    .option('--follow <path...>', 'files and folders that grow: logs, flight recordings and all else that tccl diagnose reads')
    .option('--gpus', 'when a job stands still: run nvidia-smi on the hosts of the ranks that hold it up')
    .option('--stacks', 'when a job stands still: run py-spy dump for these ranks, which stops each for some milliseconds')
    .option(
      '--torch-dump <prefix>',
      'when a job stands still: ask PyTorch for flight recordings, by pipes PREFIX*.pipe (see the guide)',
    )
    .option(
      '--tool-command <template>',
      'way to the hosts for these three, with {host} and {command} (default: ssh, or directly on this host)',
    )
    .option('--record <file>', 'append all reports to a file, which tccl diagnose reads')
    .option('--prometheus <address>', 'serve the states of the jobs at /metrics of :PORT or HOST:PORT')
    .option('--json', 'print a line of JSON for each job and report')
    .addHelpText(
      'after',
      `${examples(
        ['the job on this host', 'tccl watch'],
        ['a job of several hosts: the next one is asked where one does not answer', 'tccl watch gpu1 gpu2 gpu3'],
        ['two reports ten seconds apart, and an exit code', 'tccl watch gpu1 --every 10s --samples 2'],
        ['in a container of Kubernetes', "tccl watch train-0 --command 'kubectl exec {host} -- ncclras -f json'"],
        ['over ssh', "tccl watch gpu1 --command 'ssh {host} ncclras -f json'"],
        ['beside a job: end when it hangs', 'tccl watch --until-stuck 5m --json'],
        ['a log and flight recordings as they are written', 'tccl watch --follow job.log /tmp/traces'],
        ['GPUs and Python stacks of the ranks that hold it up', 'tccl watch gpu1 --gpus --stacks'],
        ['numbers for Prometheus', 'tccl watch gpu1 --prometheus :9400'],
      )}\nTimes: 500ms, 5s, 2m, 1h. NCCL answers from version 2.24 on (RAS); numbers of healthy communicators come with 2.28.7. tccl only reads: it sends nothing that changes the job.
Exit codes: 0 healthy, or the job has ended; 1 stuck, or a process is dead; 2 wrong use, or nothing answers; 3 undecided.`,
    )
    .action(async (targets: string[], options: WatchOptions) => {
      const { watchJobs } = await import('../watch/show.js');
      process.exitCode = await watchJobs(targets, options);
    });
}

function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('expected a whole number from 1 on');
  return Number(text);
}
