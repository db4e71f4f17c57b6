import { expect, it } from 'vitest';
import { FakeDriver } from '../../../../testing/cuda/fake-driver.js';
import { verify } from '../../../../testing/cuda/verify.js';
import { runs } from '../../../runs.js';

const only = runs(1, 2) === 1 ? 'sum_float16' : '';
const linesOf = (driver: FakeDriver, kernels = only): string[] =>
  [...verify(driver, 0, { only: kernels, isSmall: true })].map(
    ({ name, text, isWrong = false }) => `${isWrong ? 'WRONG ' : ''}${name}: ${text.replace(/\d+\.\d+/g, 'N')}`,
  );

it('says what a driver has', () => {
  const lines = linesOf(new FakeDriver());
  expect(lines.filter((line) => line.startsWith('WRONG'))).toEqual([]);
  expect(lines.map((line) => line.replace(/:.*/, ''))).toEqual([
    'driver',
    'GPU 0',
    'addresses',
    'page-locking',
    'kernels',
    'copies',
    'launches',
  ]);
  expect(lines).toContain('copies: 1 MiB: host to GPU N GB/s, GPU to host N GB/s, within the GPU N GB/s; the bytes are right');
  if (only !== '') expect(lines[4]).toMatch(/^kernels: 6 of 6 give the interpreter's bits in 1 cases each/);
});

/** A driver one of whose functions does something else. */
function broken<Name extends keyof FakeDriver>(name: Name, make: (own: FakeDriver[Name]) => FakeDriver[Name]): FakeDriver {
  const driver = new FakeDriver();
  return Object.assign(driver, { [name]: make(driver[name]) });
}

it('finds kernels that compute something else', () => {
  const driver = broken('cuModuleLoadDataEx', (own) => (out, image, ...rest) => {
    const text = new TextDecoder().decode(image as Uint8Array);
    const other = text.includes('_stream') ? text.replace(/add\.rn\.f32/g, 'mul.rn.f32') : text;
    return own(out, new TextEncoder().encode(other), ...rest);
  });
  const lines = linesOf(driver, 'reduce_sum_float32_');
  expect(lines).toContainEqual(expect.stringMatching(/^WRONG kernels: 2 of 3 give/));
  expect(lines).toContainEqual(
    expect.stringMatching(/^WRONG kernel: reduce_sum_float32_stream for sm_75, seed 1: element \d+ is /),
  );
});

it('finds copies that do not arrive, attributes of other numbers, and launches without effect', () => {
  const copies = linesOf(
    broken('cuMemcpyDtoDAsync_v2', () => () => 0),
    'none',
  );
  expect(copies).toContainEqual(expect.stringMatching(/^WRONG copies: .* \d+ pages are wrong$/));
  const addresses = linesOf(
    broken('cuPointerGetAttribute', (own) => (out, attribute, pointer) => own(out, attribute === 9 ? 2 : attribute, pointer)),
    'none',
  );
  expect(addresses).toContainEqual(expect.stringMatching(/^WRONG addresses: attributes \[2,9,11,12\] give .*"device":2/));
  const launches = linesOf(
    broken('cuLaunchKernel', () => () => 0),
    'none',
  );
  expect(launches).toContainEqual(expect.stringMatching(/^WRONG launches: /));
});
