import type { Command } from 'commander';
import { InvalidArgumentError } from '../../errors.js';
import { examples } from '../output.js';

/** `tccl diagnose`: one verdict from all files about a job. */
export function register(program: Command): void {
  program
    .command('diagnose')
    .description('find out why a job failed, hangs or is slow, from all files that were collected about it')
    .argument(
      '[path...]',
      'files, folders, archives (.zip, .tar, compressed by gzip, xz, zstd or bzip2), or - for the standard input: logs, flight recordings, RAS, traces, topologies, and outputs of nvidia-smi, lspci, ibstat, dmesg, df and others',
    )
    .option('--collect', 'print a shell script that gathers such files on this host; it needs no root and masks secrets')
    .option('--hosts <list>', 'with --collect: gather on these hosts by ssh: a,b,c')
    .option('--json', 'print what each file is, the verdict and the findings as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['everything in a folder', 'tccl diagnose incident-42/'],
        ['what ranks were at when they hung', 'tccl diagnose /tmp/nccl_trace_rank_*'],
        ["a log, and the machine's own words", 'tccl diagnose job.log dmesg.txt topo.txt'],
        ['an archive, or a pipe', 'tccl diagnose incident-42.tar.gz; kubectl logs job/train | tccl diagnose -'],
        [
          'gather what these hosts say, and read it',
          'tccl diagnose --collect --hosts gpu1,gpu2 > collect.sh; sh collect.sh incident-42; tccl diagnose incident-42',
        ],
      )}\nExit codes: 0 healthy (all that began was seen to end), 1 a fault, 2 nothing that can be read, 3 undecided: the files do not show which.`,
    )
    .action(
      async (paths: string[], options: { readonly json?: boolean; readonly collect?: boolean; readonly hosts?: string }) => {
        if (options.collect === true || options.hosts !== undefined) {
          const { showScript } = await import('../diagnose/collect.js');
          showScript(paths, options);
          return;
        }
        if (paths.length === 0)
          throw new InvalidArgumentError(
            'ARGUMENT_TYPE',
            'tccl diagnose needs files, a folder, or - for the standard input; --collect prints a script that gathers them',
          );
        const { keepHeapSmall } = await import('../log/read.js');
        const { showDiagnosis } = await import('../diagnose/show.js');
        keepHeapSmall();
        process.exitCode = await showDiagnosis(paths, options);
      },
    );
}
