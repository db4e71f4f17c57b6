import { accessSync, constants, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { dirname } from 'node:path';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { examples, print, printJson, printNotes, progressLine } from '../output.js';

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
      'Measures every algorithm for every collective on this host and writes a profile, by which init() chooses from then on. ' +
        'Takes about two minutes, on a machine that does nothing else. Without a profile, the defaults of docs/notes/algorithms.md hold.',
    )
    .addOption(new Option('-n, --ranks <list>', 'numbers of ranks to measure').argParser(parseRanks).default([2, 4, 8], '2,4,8'))
    .option('-e, --maxbytes <size>', 'largest size; calls beyond it take what is the fastest there', '16M')
    .option(
      '-o, --output <file>',
      'where the profile goes (default: where init() looks, TCCL_PROFILE or ~/.config/tccl/profile.json)',
    )
    .option('--json', 'prints the profile instead of writing it')
    .addHelpText(
      'after',
      examples(
        ['all algorithms at 2, 4 and 8 ranks', 'tccl tune'],
        ['larger arrays, 4 ranks only', 'tccl tune -n 4 -e 256M'],
        ['a profile for one job', 'tccl tune -n 16 -o job.json && TCCL_PROFILE=job.json tccl run -n 16 -- node job.js'],
      ),
    )
    .action(async ({ ranks, maxbytes, output, json }: TuneOptions) => {
      const { formatSize, parseSize } = await import('../../perf/sizes.js');
      // Errors are reported before the measurement, which takes minutes.
      const maxBytes = parseSize(maxbytes, '--maxbytes');
      const { profilePath } = await import('../../runtime/algorithms/profile.js');
      const { InvalidArgumentError: OutOfRange, InvalidUsageError } = await import('../../errors.js');
      const { findPlacement } = await import('../../runtime/launch/placement.js');
      const { busyNote, changesBy, SMALLEST_BYTES, tune } = await import('../../perf/tune.js');
      if (maxBytes < SMALLEST_BYTES)
        throw new OutOfRange(
          'ARGUMENT_RANGE',
          `--maxbytes ${maxbytes} is less than the smallest size that is measured, ${SMALLEST_BYTES}`,
        );
      const place = findPlacement(process.env);
      if (place !== undefined && place.nRanks > 1)
        throw new InvalidUsageError(
          'UNSUPPORTED',
          `tccl tune starts its ranks by itself: run it once, not as ${place.nRanks} ranks by ${place.launcher}`,
        );
      const path = output ?? profilePath(process.env);
      if (!json) await toFile(path, () => checkWritable(path));
      const busy = busyNote(loadavg()[0] ?? 0, availableParallelism());
      const line = progressLine();
      const profile = await tune({
        ranks,
        maxBytes,
        onProgress: (done, total, { kind, ranks: count, size }) =>
          line.update(`${done}/${total} measured: ${kind} of ${count} ranks, ${formatSize(size)} …`),
      });
      line.done();
      if (busy !== undefined) printNotes([busy]);
      if (json) {
        printJson(profile);
        return;
      }
      await toFile(path, () => writeFileSync(path, `${JSON.stringify(profile)}\n`));
      const changes = changesBy(profile);
      print(`The profile of ${profile.machine} is in ${path}`);
      print(
        ...(changes.length === 0
          ? ['By this profile, the defaults are the fastest here.']
          : ['What differs from the defaults by it:', ...changes.map((change) => `  ${change}`)]),
      );
    });
}

function checkWritable(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isDirectory()) throw new Error('it is a folder; name a file in it');
  accessSync(existing === undefined ? dirname(path) : path, constants.W_OK);
}

/** @throws SystemError `FILE` */
async function toFile(path: string, act: () => void): Promise<void> {
  try {
    act();
  } catch (cause) {
    const { describeError, SystemError } = await import('../../errors.js');
    throw new SystemError('FILE', `the profile cannot be written: ${describeError(cause)}`, { file: path, cause });
  }
}

function parseRanks(text: string): number[] {
  const ranks = text.split(',').map(Number);
  if (!ranks.every((count) => Number.isInteger(count) && count >= 2 && count <= 256)) {
    throw new InvalidArgumentError('They must be whole numbers from 2 to 256, such as 2,4,8.');
  }
  return [...new Set(ranks)].sort((a, b) => a - b);
}
