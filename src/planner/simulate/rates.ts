import type { Generation } from '../tuning/constants.js';
import type { CallPlan } from './call-plan.js';
import type { Environment } from './environment.js';
import { fairRates } from './fair-share.js';
import type { Physics } from './physics.js';
import type { Route, Routes } from './routes.js';
import { type SharedLinks, sharedCapacityGBps } from './shared-links.js';

/** Properties of a cluster, its machines and its surroundings that rates and times of connections follow from. */
export interface Conditions {
  readonly routes: Routes;
  readonly generation: Generation;
  /** Compute capability × 10, the least of all ranks. */
  readonly compCap: number;
  /** Bandwidth of all channels of a node with LL to other nodes; Infinity on one node. */
  readonly llNetGBps: number;
  readonly physics: Physics;
  readonly environment: Environment;
}

/** Throughput of a thread block; of messages between pairs, half of its warps send and half receive. */
export function blockGBps(plan: CallPlan, { physics, generation }: Conditions): number {
  const { isPairs, isSwitch, isTree, protocol, nChannels } = plan;
  const own = physics.of[generation];
  const { common } = physics;
  if (isPairs) return common.pairsBlockRatio * (protocol === 'Simple' ? own.copyBlockGBps : own.llBlockGBps);
  if (isSwitch) return own.nvlsBlockGBps * (isTree ? own.nvlsTreeRatio : Math.min(1, own.nvlsBlocks / nChannels));
  return { LL: own.llBlockGBps, LL128: own.ll128BlockGBps, Simple: own.copyBlockGBps }[protocol];
}

/** Fair rates of connections that are busy at the same time, GB/s. */
export function connectionRates(
  shared: SharedLinks,
  routes: readonly Route[],
  plan: CallPlan,
  conditions: Conditions,
): Float64Array {
  const block = blockGBps(plan, conditions);
  const { physics, environment } = conditions;
  const capacity = Float64Array.from(shared.links, (link) =>
    sharedCapacityGBps(link, conditions.routes, block, physics, environment.oversubscription, plan.peers > 1),
  );
  // Data for a NIC are written at the speed of blocks, then wait for the NIC.
  const netGBps = Math.min(10 * block, llGBps(plan, conditions));
  const most = Float64Array.from(routes, ({ medium }) => (medium === 'net' ? netGBps : block));
  return fairRates({ ...shared, most }, capacity);
}

/** Bandwidth limit of a channel to another node with LL, whose buffers lie in memory of the CPU, which checks all flags. */
function llGBps({ protocol, isPairs, nChannels }: CallPlan, { llNetGBps }: Conditions): number {
  return protocol === 'LL' && !isPairs ? llNetGBps / nChannels : Infinity;
}
