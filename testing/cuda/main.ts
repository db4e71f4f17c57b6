import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { countDevices } from '../../src/runtime/device/cuda/context.js';
import type { Driver } from '../../src/runtime/device/cuda/functions.js';
import { loadDriver } from '../../src/runtime/device/cuda/load.js';
import { runChild } from './child.js';
import { FakeDriver } from './fake-driver.js';
import type { Part, Seen, Verdict } from './part.js';
import { parts, type PartName } from './parts.js';

const names = Object.keys(parts) as PartName[];
const help = `npm run verify:cuda [-- options]: checks tccl on an NVIDIA GPU (docs/notes/cuda.md)

  --device N   number of the GPU, instead of 0
  --part NAME  this part alone, or several: ${names.join(', ')}
  --only TEXT  kernels whose names contain the text
  --json       a line of JSON for each check
  --fake       a driver without a GPU, which interprets kernels: it says nothing about a GPU

Each part has a process and a time limit of its own; all of them take less than 8 minutes.
Exit codes: 0 all is right, 1 something is wrong or slow, 3 there is no GPU.`;

/** Exit code where there is nothing to check. */
const NOTHING = 3;
/** Seconds for all parts. */
const LIMIT_S = 460;

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: '0' },
    part: { type: 'string', multiple: true, default: names },
    only: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
    fake: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
    inside: { type: 'string' },
  },
});
const { fake, only, inside, json } = values;

const unknown = values.part.find((name) => !(name in parts));
if (values.help) console.log(help);
else if (unknown !== undefined) {
  console.error(`verify:cuda: no part ${unknown}; there are ${names.join(', ')}`);
  process.exitCode = 1;
} else process.exitCode = inside === undefined ? await runAll() : await runInside(parts[inside as PartName]);

/** Opens the driver, or gives the reason why there is none. */
function openDriver(): Driver | string {
  try {
    const driver = fake ? new FakeDriver({ devices: 2, hasMulticast: true }) : loadDriver();
    countDevices(driver);
    return driver;
  } catch (error) {
    return (error as Error).message.replace(/^cuda: /, '');
  }
}

/** Runs a part in this process, and prints what it sees as JSON. */
async function runInside(part: Part): Promise<number> {
  const driver = openDriver();
  if (typeof driver === 'string') throw new Error(driver);
  const setting = { driver, ordinal: Number(values.device), only, isFake: fake };
  for await (const seen of part.run(setting)) console.log(JSON.stringify(seen));
  return 0;
}

async function runAll(): Promise<number> {
  process.once('SIGINT', () => process.exit(130));
  const driver = openDriver();
  if (typeof driver === 'string') {
    console.log(json ? JSON.stringify({ verdict: 'skipped', text: driver }) : `verify:cuda: nothing was checked: ${driver}`);
    return NOTHING;
  }
  const counts: Record<Verdict, number> = { right: 0, wrong: 0, slow: 0, skipped: 0 };
  const show = (part: string, { name, text, verdict = 'right', figures }: Seen): void => {
    counts[verdict]++;
    if (json) console.log(JSON.stringify({ part, name, verdict, text, figures }));
    else console.log(`${verdict === 'right' ? '' : `${verdict.toUpperCase()} `}${name}: ${text}`);
  };
  if (fake && !json) console.log('fake driver: nothing below is about a GPU');
  const endMs = performance.now() + LIMIT_S * 1000;
  for (const name of values.part as PartName[]) {
    const part: Part = parts[name];
    if (fake && part.notOnFake !== undefined) {
      show(name, { name, text: part.notOnFake, verdict: 'skipped' });
      continue;
    }
    const limitS = Math.min(fake ? 2 * part.limitS : part.limitS, Math.ceil((endMs - performance.now()) / 1000));
    if (limitS <= 0) {
      show(name, { name, text: `no time is left of ${LIMIT_S} s`, verdict: 'skipped' });
      continue;
    }
    const words = ['--inside', name, '--device', values.device, '--only', only, ...(fake ? ['--fake'] : [])];
    const program = [process.execPath, fileURLToPath(import.meta.url), ...words];
    const take = (line: string): void => {
      if (line.startsWith('{')) show(name, JSON.parse(line) as Seen);
    };
    const end = await runChild(program, AbortSignal.timeout(limitS * 1000), take, { hasGroup: true });
    const isLate = end.reason === 'time limit';
    const why = isLate ? `no end within ${limitS} s` : (end.reason ?? (end.status === 0 ? undefined : reasonIn(end.stderr)));
    if (why !== undefined) show(name, { name, text: why, verdict: 'wrong' });
  }
  const isRight = counts.wrong + counts.slow === 0;
  const counted = (Object.entries(counts) as [Verdict, number][]).filter(([, count]) => count > 0);
  if (!json) console.log(`verify:cuda: ${counted.map(([verdict, count]) => `${count} ${verdict}`).join(', ')}`);
  return isRight ? 0 : 1;
}

/** The line of an uncaught error, or the last one. */
function reasonIn(stderr: string): string {
  const lines = stderr.trim().split('\n');
  return lines.find((line) => /^\w*Error/.test(line)) ?? lines.at(-1) ?? 'no reason';
}
