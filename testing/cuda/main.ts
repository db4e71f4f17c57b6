import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { countDevices } from '../../src/runtime/device/cuda/context.js';
import { loadDriver } from '../../src/runtime/device/cuda/load.js';
import { FakeDriver } from './fake-driver.js';
import { verify, type Seen } from './verify.js';

const help = `npm run verify:cuda [-- options]: checks tccl on an NVIDIA GPU (docs/notes/cuda.md)

  --device N   number of the GPU, instead of 0
  --only TEXT  kernels whose names contain the text
  --fake       a driver without a GPU, which interprets kernels: it says nothing about a GPU

Exit codes: 0 all is right, 1 something is wrong, 3 there is no GPU.`;

/** Exit code where there is nothing to check. */
const NOTHING = 3;

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: '0' },
    only: { type: 'string', default: '' },
    fake: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) console.log(help);
else process.exitCode = run();

function run(): number {
  const { fake, only } = values;
  const ordinal = Number(values.device);
  let driver;
  try {
    driver = fake ? new FakeDriver() : loadDriver();
    countDevices(driver);
  } catch (error) {
    console.log(`verify:cuda: nothing was checked: ${(error as Error).message.replace(/^cuda: /, '')}`);
    return NOTHING;
  }
  const wrong: Seen[] = [];
  const show = (seen: Seen): void => {
    if (seen.isWrong === true) wrong.push(seen);
    console.log(`${seen.isWrong === true ? 'WRONG ' : ''}${seen.name}: ${seen.text}`);
  };
  if (fake) console.log('fake driver: nothing below is about a GPU');
  for (const seen of verify(driver, ordinal, { only, isSmall: fake })) show(seen);
  show(ofRanks(ordinal, fake));
  console.log(wrong.length > 0 ? 'verify:cuda: something is wrong' : 'verify:cuda: all is right');
  return wrong.length > 0 ? 1 : 0;
}

/** Two processes with `tccl/cuda` on the GPU. */
function ofRanks(ordinal: number, fake: boolean): Seen {
  const repository = fileURLToPath(new URL('../../..', import.meta.url));
  const program = fileURLToPath(new URL('rank.js', import.meta.url));
  const words = [`${repository}/dist/cli/main.js`, 'run', '-n', '2', '--', process.execPath, program, String(ordinal)];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...words, ...(fake ? ['--fake'] : [])], { encoding: 'utf8' });
  const isRight = status === 0 && stdout.split('right').length === 3;
  return { name: 'tccl/cuda', text: isRight ? stdout.trim().replace(/\n/g, '; ') : `${stdout}${stderr}`, isWrong: !isRight };
}
