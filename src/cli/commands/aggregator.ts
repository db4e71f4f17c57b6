import type { Command } from 'commander';
import { examples } from '../output.js';

/** `tccl aggregator`: a process in place of a network that reduces. */
export function register(program: Command): void {
  program
    .command('aggregator')
    .summary('add all-reduces of several hosts in place of the network')
    .description(
      'Starts a process that adds the all-reduces of ranks on several hosts, in place of a network that reduces (CollNet of ' +
        'NCCL): each host sends and receives its data once. Prints an id, which the ranks get as TCCL_AGGREGATOR; several ids, ' +
        'with commas between them, share the work. tccl run --collnet starts one by itself. The id contains a secret.',
    )
    .option(
      '--listen <host:port>',
      'address to listen on, which is then the id; set the same TCCL_COMM_SECRET here and for the ranks (default: a free port)',
    )
    .addHelpText(
      'after',
      examples(
        ['on a host that all ranks reach; it prints the id', 'tccl aggregator'],
        ['at a known address, with a secret of your own', 'TCCL_COMM_SECRET=… tccl aggregator --listen 10.0.0.9:29600'],
        ['a job that uses it', 'TCCL_AGGREGATOR=tccl1:… tccl run --hosts node0:4,node1:4 node job.js'],
      ),
    )
    .action(async (options: { readonly listen?: string }) => {
      const { serveAggregator } = await import('../aggregator/serve.js');
      await serveAggregator(options.listen);
    });
}
