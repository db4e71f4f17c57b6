import { closeSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SwitchMemory } from '../../../../src/cuda/switch-memory.js';
import { CudaContext } from '../../../../src/runtime/device/cuda/context.js';
import { FakeDriver, FakeMachine } from '../../../../testing/cuda/fake-driver.js';

/** A machine whose waits do something in place of another process. */
class Machine extends FakeMachine {
  onPause: () => void = () => undefined;
  override pause(): void {
    this.onPause();
  }
}

/** Two processes on one machine, with a GPU each, and the object that the first one has made. */
function twoRanks() {
  const memory = new Uint8Array(new SharedArrayBuffer(1 << 24));
  const machines = [process.pid, 1].map((pid) => new Machine(memory, pid));
  const drivers = machines.map((machine) => new FakeDriver({ devices: 2, hasMulticast: true, machine }));
  const contexts = drivers.map((driver, ordinal) => {
    driver.cuInit(0);
    return new CudaContext(driver, ordinal);
  });
  const [first, second] = contexts as [CudaContext, CudaContext];
  const own = SwitchMemory.create(first, 2, 1000);
  const fd = own.export();
  const other = SwitchMemory.import(second, fd, own.bytes);
  closeSync(fd);
  const read = (rank: number, pointer: bigint): number => drivers[rank]?.bytesAt(pointer, 1)[0] ?? -1;
  return { machines, drivers, own, other, read };
}

const reason = (run: () => void): string => {
  try {
    run();
    return 'nothing';
  } catch (error) {
    return (error as Error).message.replace(/ \(.*/, '');
  }
};

describe('multicast memory of a fake driver', () => {
  it('is bound when all GPUs are added, accessed when all memory is bound, and given back', () => {
    const { drivers, own, other, read } = twoRanks();
    for (const memory of [own, other]) memory.add();
    for (const memory of [own, other]) memory.bind(0n);
    drivers.forEach((driver, i) => {
      const context = new CudaContext(driver, i);
      context.run((calls) => calls.cuStreamSynchronize(0n));
      context.close();
    });
    for (const memory of [own, other]) memory.map();
    expect([read(0, own.own), read(1, other.own)]).toEqual([0, 0]);
    expect(drivers.map(({ left }) => left.virtual)).toEqual([7, 7]);
    for (const memory of [own, other]) memory.close();
    expect(drivers.map(({ left }) => left.virtual)).toEqual([0, 0]);
  });

  it('blocks a call until other processes have made the step before', () => {
    const { machines, own, other } = twoRanks();
    const [machine] = machines as [Machine];
    own.add();
    let pauses = 0;
    machine.onPause = () => {
      if (++pauses === 3) other.add();
    };
    own.bind(0n);
    expect(pauses).toBe(3);
    machine.onPause = () => {
      if (++pauses === 6) other.bind(0n);
    };
    own.map();
    expect(pauses).toBe(6);
  });

  it('blocks forever where a process does not come', () => {
    const { own } = twoRanks();
    own.add();
    expect(reason(() => own.bind(0n))).toBe('cuMulticastBindMem waits for ever: not all GPUs were added');
    expect(reason(() => own.map())).toBe('cuMemMap waits for ever: not all GPUs were added');
  });

  it('refuses another order', () => {
    const { own, other } = twoRanks();
    const invalid = (name: string) => `${name}: CUDA_ERROR_INVALID_VALUE`;
    own.add();
    expect(reason(() => own.add())).toBe(invalid('cuMulticastAddDevice'));
    other.add();
    own.bind(0n);
    expect(reason(() => own.bind(0n))).toBe(invalid('cuMulticastBindMem'));
    own.close();
    expect(reason(() => own.add())).toBe(invalid('cuMulticastAddDevice'));
    expect(reason(() => own.export())).toBe(invalid('cuMemExportToShareableHandle'));
  });

  it('refuses fewer than two GPUs, and GPUs without it', () => {
    const driver = new FakeDriver({ devices: 2, hasMulticast: true });
    driver.cuInit(0);
    const context = new CudaContext(driver, 0);
    expect(reason(() => SwitchMemory.create(context, 1, 64))).toContain('CUDA_ERROR_INVALID_VALUE');
    const without = new FakeDriver();
    without.cuInit(0);
    expect(reason(() => SwitchMemory.create(new CudaContext(without, 0), 2, 64))).toContain('CUDA_ERROR_NOT_SUPPORTED');
  });
});
