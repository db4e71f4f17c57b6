import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { examples, progressLine } from '../output.js';

interface TuneOptions {
  readonly ranks: readonly number[];
  readonly maxbytes: string;
  readonly output?: string;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command('tune')
    .summary('measure this host, so that the fastest algorithm is chosen')
    .description(
      'Measures every algorithm for every collective on this host and writes a profile, by which init() chooses from then on. '
      + 'Takes some minutes, on a machine that does nothing else. Without a profile, the defaults of docs/algorithms.md hold.',
    )
    .option('-n, --ranks <list>', 'numbers of ranks to measure, such as 2,4,8', parseRanks, [2, 4, 8])
    .option('-e, --maxbytes <size>', 'largest size', '16M')
    .option('-o, --output <file>', 'where the profile goes (default: where init() looks, TCCL_PROFILE or ~/.config/tccl/profile.json)')
    .option('--json', 'prints the profile instead of writing it')
    .addHelpText('after', examples(
      ['all algorithms at 2, 4 and 8 ranks', 'tccl tune'],
      ['a profile for one job', 'tccl tune -n 16 -o job.json && TCCL_PROFILE=job.json tccl run -n 16 -- node job.js'],
    ))
    .action(async ({ ranks, maxbytes, output, json }: TuneOptions) => {
      const { formatSize, parseSize } = await import('../../perf/sizes.js');
      // Everything that can be wrong is found before minutes are spent.
      const maxBytes = parseSize(maxbytes, '--maxbytes');
      const { profilePath } = await import('../../communicator/profile.js');
      const { SystemError } = await import('../../errors.js');
      const { tune } = await import('../../perf/tune.js');
      const line = progressLine();
      const profile = await tune({
        ranks,
        maxBytes,
        onProgress: (done, total, { kind, ranks: count, size }) => line.update(`${done}/${total} measured: ${kind} of ${count} ranks, ${formatSize(size)} …`),
      });
      line.done();
      const text = `${JSON.stringify(profile)}\n`;
      if (json) return void process.stdout.write(text);
      const path = output ?? profilePath(process.env);
      try {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, text);
      } catch (cause) {
        throw new SystemError('FILE', `the profile cannot be written: ${(cause as Error).message}`, { file: path, cause });
      }
      console.log(`The profile of ${profile.machine} is in ${path}`);
    });
}

function parseRanks(text: string): number[] {
  const ranks = text.split(',').map(Number);
  if (!ranks.every((count) => Number.isInteger(count) && count >= 2 && count <= 256)) {
    throw new InvalidArgumentError('They must be whole numbers from 2 to 256, such as 2,4,8.');
  }
  return ranks;
}
