import { type Command, Option } from 'commander';
import { examples } from '../output.js';
import { atLeastOneSecond } from '../times.js';
import type { StudioOptions } from '../studio/serve.js';

/** `tccl studio`: a page to look at clusters and incidents. */
export function register(program: Command): void {
  program
    .command('studio')
    .description(
      'look at a cluster in a browser: machine, paths, channels, choices and their reasons; change it, ask, open files',
    )
    .argument(
      '[file...]',
      'topologies, cluster files, logs and all that tccl diagnose reads, folders of them, - for the standard input; or one machine of the catalogue, NAME:4 for four of it',
    )
    .option('--port <port>', 'port on 127.0.0.1 (default: a free one)')
    .option('--no-open', 'only print the address, and open no browser')
    .option('--out <file>', 'write the page with these files into a file instead: it works without tccl and without a network')
    .option('--watch <target...>', "follow running jobs at HOST, HOST:PORT or [ADDRESS]:PORT of NCCL's RAS, as tccl watch does")
    .option('--inspect [job]', 'follow running jobs of tccl on this host, or one of them, as tccl inspect does')
    .addOption(
      new Option('--every <time>', 'time between its reports, at least 1s').argParser(atLeastOneSecond).default(5000, '5s'),
    )
    .addHelpText(
      'after',
      `${examples(
        ['an example to begin with', 'tccl studio'],
        ['four machines of the catalogue', 'tccl studio dgx-h100:4'],
        ["a machine's topology", 'tccl studio topo.xml'],
        ['an incident', 'tccl studio incident-42/'],
        ['a page to send to somebody, with the file in it', 'tccl studio job.log --out job.html'],
        ['a running job, live', 'tccl studio --watch gpu1'],
        ["jobs of tccl's own ranks, live", 'tccl studio --inspect'],
        ['on a server: forward the port with ssh -L 8123:127.0.0.1:8123', 'tccl studio --no-open --port 8123'],
      )}\nThe page plans in the browser; files that are opened in it never leave it. The address has a token, which other users of the host do not know.`,
    )
    .action(async (files: string[], options: StudioOptions) => {
      const { showStudio } = await import('../studio/serve.js');
      await showStudio(files, options);
    });
}
