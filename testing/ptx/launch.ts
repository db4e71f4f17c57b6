import { kernelName, moduleText, type KernelDescription } from '../../src/runtime/device/ptx/kernels.js';
import { RECORD_BYTES, writeStep, type Step } from '../../src/runtime/device/ptx/step-record.js';
import type { Level } from '../../src/runtime/device/ptx/targets.js';
import type { DeviceMemory } from './memory.js';
import { parseModule, type Kernel } from './parse.js';
import type { Launch } from './run.js';

/** A kernel as the interpreter takes it, parsed from the text that a GPU would get. */
export function loadKernel(
  description: KernelDescription,
  level: Level,
  edit: (text: string) => string = (text) => text,
): Kernel {
  const name = kernelName(description);
  const kernel = parseModule(edit(moduleText([description], level))).get(name);
  if (kernel === undefined) throw new Error(`no kernel ${name} in its module`);
  return kernel;
}

/** A launch of steps that wait for flags: a list for each block, all of one length. */
export function launchOfSteps(
  memory: DeviceMemory,
  kernel: Kernel,
  lists: readonly (readonly Step[])[],
  { device = 'gpu', threads = 32, abort = memory.allocate('abort word', 4) } = {},
): Launch {
  const nSteps = lists[0]?.length ?? 0;
  const steps = memory.allocate(`steps of ${device}`, Math.max(1, lists.length * nSteps) * RECORD_BYTES);
  const view = memory.viewAt(steps);
  lists.forEach((list, block) => {
    if (list.length !== nSteps) throw new RangeError('blocks have lists of one length');
    list.forEach((step, i) => {
      writeStep(view, (block * nSteps + i) * RECORD_BYTES, step);
    });
  });
  return { kernel, device, blocks: lists.length, threads, parameters: { steps, nSteps, abort } };
}

/** A launch of the one step of a kernel that a stream orders. */
export function launchOfStep(kernel: Kernel, step: Step, { device = 'gpu', blocks = 2, threads = 32 } = {}): Launch {
  const record = new Uint8Array(RECORD_BYTES);
  writeStep(new DataView(record.buffer), 0, step);
  return { kernel, device, blocks, threads, parameters: { step: record } };
}
