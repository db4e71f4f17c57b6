import type { Command } from 'commander';
import { examples } from '../output.js';

/** `tccl diagnose`: one verdict from all files about a job. */
export function register(program: Command): void {
  program
    .command('diagnose')
    .description('find out why a job failed, hangs or is slow, from all files that were collected about it')
    .argument(
      '<path...>',
      'files, or folders with them: logs, PyTorch flight recordings, RAS, NCCL Inspector, traces, nvidia-smi, ibstat, dmesg, topologies, nccl-tests',
    )
    .option('--json', 'print what each file is, the verdict and the findings as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['everything in a folder', 'tccl diagnose incident-42/'],
        ['what ranks were at when they hung', 'tccl diagnose /tmp/nccl_trace_rank_*'],
        ["a log, and the machine's own words", 'tccl diagnose job.log dmesg.txt topo.txt'],
      )}\nExit codes: 0 nothing wrong, 1 something found, 2 nothing that can be read.`,
    )
    .action(async (paths: string[], options: { readonly json?: boolean }) => {
      const { showDiagnosis } = await import('../diagnose/show.js');
      process.exitCode = await showDiagnosis(paths, options);
    });
}
