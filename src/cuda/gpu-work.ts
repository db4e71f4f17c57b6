import { SystemError, type TcclError } from '../errors.js';
import type { CudaContext } from '../runtime/device/cuda/context.js';
import type { Driver } from '../runtime/device/cuda/functions.js';

/** Work on a GPU that waits for other ranks. */
export interface GpuWork {
  /** True until it is known to be over. */
  readonly isBusy: boolean;
  /** The failure of the ranks while it waits for one that may never do its part. */
  readonly stuck: TcclError | undefined;
}

/**
 * By driver and number of the GPU: the work of all devices that this thread has opened there. Calls of the driver such as
 * `cuMemFree` may wait for all work of the GPU, whichever device has queued it.
 */
const works = new WeakMap<Driver, Map<number, Set<GpuWork>>>();

export function workOn({ driver, ordinal }: CudaContext): Set<GpuWork> {
  let ofDriver = works.get(driver);
  if (ofDriver === undefined) works.set(driver, (ofDriver = new Map<number, Set<GpuWork>>()));
  let work = ofDriver.get(ordinal);
  if (work === undefined) ofDriver.set(ordinal, (work = new Set()));
  return work;
}

/** The failure that work on the GPU may wait for without end. */
export function stuckOn(context: CudaContext): TcclError | undefined {
  for (const { stuck } of workOn(context)) if (stuck !== undefined) return stuck;
  return undefined;
}

/** Throws SystemError `DEVICE_LOST` where a call of this process may wait for a rank that has died. */
export function checkNotStuck(context: CudaContext): void {
  const stuck = stuckOn(context);
  if (stuck === undefined) return;
  throw new SystemError(
    'DEVICE_LOST',
    `cuda: work that was queued on GPU ${context.ordinal} waits for a rank that has died (${stuck.message}); start this process again`,
    { cause: stuck },
  );
}
