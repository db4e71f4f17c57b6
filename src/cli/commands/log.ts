import type { Command } from 'commander';
import type { LogOptions } from '../log/show.js';
import { examples } from '../output.js';

/** `tccl log`: the diagnosis of NCCL's logs. */
export function register(program: Command): void {
  program
    .command('log')
    .description('read the log of a job with NCCL (NCCL_DEBUG=INFO): what is wrong, why, and what to do')
    .argument('<file...>', 'logs of one or many ranks, NCCL 2.4 to 2.32; - for the standard input')
    .option('--rank <rank>', 'show all that is known of one rank')
    .option(
      '--topology <file>',
      'compare with what the NCCL of the log would plan for this machine: XML file, or a machine of the catalogue',
    )
    .option('--nodes <count>', 'number of such machines (default: as many as the ranks of the log need)')
    .option('--hardware <description>', 'what the machine has where the topology does not say: a line, or @FILE')
    .option('--json', 'print communicators, ranks, tables and findings as JSON')
    .addHelpText(
      'after',
      `${examples(
        ['what does this log say, and why is the job slow?', 'tccl log job.log'],
        ['one file a rank, as NCCL_DEBUG_FILE=nccl.%h.%p.log writes them', 'tccl log nccl.*.log'],
        ['while it runs', 'kubectl logs job/train --prefix | tccl log -'],
        ['the neighbours, transports and settings of rank 5', 'tccl log job.log --rank 5'],
        ['does NCCL do what it should on these machines?', 'tccl log job.log --topology dgx-h100 --nodes 2'],
      )}\nExit codes: 0 healthy (all that began was seen to end), 1 a fault, 2 no log that can be read, 3 undecided: the log does not show which.
For rings, speeds and choices set NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING.`,
    )
    .action(async (files: string[], options: LogOptions) => {
      const { keepHeapSmall } = await import('../log/read.js');
      const { showLog } = await import('../log/show.js');
      keepHeapSmall();
      process.exitCode = await showLog(files, options);
    });
}
