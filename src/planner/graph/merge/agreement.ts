import { InputError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import { CpuArch, CpuVendor } from '../../topology/system.js';
import type { NodeContribution, RankContribution } from './contribution.js';
import { kindOf, type NodeTable } from './nodes.js';
import { type Rules, rulesOf } from '../../versions/rules.js';
import type { MergeListener } from './trace.js';

/** Figures that all ranks agree on before channels are made: mostly the minimum or maximum over the ranks. */
export interface Agreement {
  readonly nRanks: number;
  readonly nNodes: number;
  /** Fewest and most ranks that a node has. */
  readonly minLocalRanks: number;
  readonly maxLocalRanks: number;
  /** Compute capability × 10. */
  readonly minCompCap: number;
  readonly maxCompCap: number;
  /** One of {@link CpuArch}. */
  readonly cpuArch: number;
  /** One of {@link CpuVendor}. */
  readonly cpuVendor: number;
  /** The slowest NIC that any rank uses, GB/s; 0 without any. */
  readonly minNetGBps: number;
  /** The fewest NICs that a rank uses. */
  readonly minNetCount: number;
  /** The greatest number of a tree pattern. */
  readonly maxTreePattern: number;
  /** True if on all nodes all GPUs reach each other over NVLink or C2C. */
  readonly allNvLink: boolean;
  /** True if on the node of rank 0 they do so directly; other nodes see their own. */
  readonly allDirectNvLink: boolean;
  /** True if all GPUs of the node of rank 0 copy to each other peer-to-peer; other nodes see their own. */
  readonly allDirectP2p: boolean;
}

export function agree(nodes: NodeTable, parameters: Parameters, listen?: MergeListener): Agreement {
  const { kinds, nRanks, nNodes } = nodes;
  const own = kindOf(nodes, 0);
  const localRanks = kinds.map(({ ranks }) => ranks.length);
  const rules = rulesOf(parameters);
  const compCaps = rules.compCapOfAll ? ofRanks(kinds, 'compCap') : [own.byRank[0]?.compCap ?? 0];
  const mixedArch = rules.cpusOfAllRanks && kinds.some(({ cpuArch }) => cpuArch !== own.cpuArch);
  const mixedVendor = rules.cpusOfAllRanks && kinds.some(({ cpuVendor }) => cpuVendor !== own.cpuVendor);
  if (mixedArch) listen?.({ kind: 'mixed-cpus', what: 'architecture' });
  if (mixedVendor) listen?.({ kind: 'mixed-cpus', what: 'vendor' });
  return {
    nRanks,
    nNodes,
    minLocalRanks: Math.min(...localRanks),
    maxLocalRanks: Math.max(...localRanks),
    minCompCap: Math.min(...compCaps),
    maxCompCap: Math.max(...compCaps),
    cpuArch: mixedArch ? CpuArch.MIXED : own.cpuArch,
    cpuVendor: mixedVendor ? CpuVendor.MIXED : own.cpuVendor,
    minNetGBps: minNetGBps(nodes, rules),
    minNetCount: Math.min(...ofRanks(kinds, 'netCount')),
    maxTreePattern: Math.max(...kinds.map(({ graphs }) => graphs.tree.pattern)),
    allNvLink: kinds.every((kind) => kind.allNvLink),
    allDirectNvLink: own.allDirectNvLink,
    allDirectP2p: own.allDirectP2p,
  };
}

/** Older versions do not exchange it, and do not check it with one rank. */
function minNetGBps(nodes: NodeTable, { netSpeedOfRank }: Rules): number {
  if (netSpeedOfRank) return Math.min(...ofRanks(nodes.kinds, 'minNetGBps'));
  return nodes.nRanks === 1 ? 0 : (kindOf(nodes, 0).byRank[0]?.minNetGBps ?? 0);
}

/** One figure of all ranks. */
export function ofRanks(kinds: readonly NodeContribution[], field: keyof RankContribution): number[] {
  return kinds.flatMap(({ byRank }) => byRank.map((rank) => rank[field]));
}

/**
 * Refuses hosts with different numbers of network devices where the parameters say so.
 *
 * @throws InputError as NCCL does with ncclSystemError
 */
export function refuseDifferentDevices(nodes: NodeTable, parameters: Parameters): void {
  if (parameters.ignoreNetMismatch === 0) refuseDifferent(nodes, 'netDevices', 'network devices', 'NCCL_IGNORE_NET_MISMATCH');
  if (parameters.collnetEnable === 1 && parameters.ignoreCollnetMismatch === 0) {
    refuseDifferent(nodes, 'collnetDevices', 'network devices that reduce', 'NCCL_IGNORE_COLLNET_MISMATCH');
  }
}

function refuseDifferent(nodes: NodeTable, field: 'netDevices' | 'collnetDevices', what: string, variable: string): void {
  const counts = nodes.kinds.map((kind) => kind[field]);
  const most = Math.max(...counts);
  const node = nodes.kindOfNode.findIndex((kind) => (counts[kind] ?? 0) < most);
  if (node < 0) return;
  const rank = nodes.rankToNode.indexOf(node);
  throw new InputError(
    'DEVICE_MISMATCH',
    `rank ${rank} has ${counts[nodes.kindOfNode[node] ?? 0] ?? 0} ${what}, others have ${most}: NCCL stops here; set ${variable}=1 to go on`,
    { ncclResult: 2, rank },
  );
}
