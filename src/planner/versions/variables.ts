import { compareVersions } from './version.js';

/** First version of NCCL with a variable that affects plans; all others are as old as the oldest covered version. */
export const variableSince: ReadonlyMap<string, string> = new Map([
  ['NCCL_NVLSTREE_MAX_CHUNKSIZE', '2.20.3'],
  ['NCCL_NVLS_CHUNKSIZE', '2.21.5'],
  ['NCCL_WORK_ARGS_BYTES', '2.22.3'],
  ['NCCL_PAT_ENABLE', '2.23.4'],
  ['NCCL_NET_FORCE_MERGE', '2.24.3'],
  ['NCCL_NET_MERGE_LEVEL', '2.24.3'],
  ['NCCL_NET_GDR_C2C', '2.26.2'],
  ['NCCL_LL128_C2C', '2.27.3'],
  ['NCCL_PXN_C2C', '2.27.3'],
  ['NCCL_MNNVL_SCATTER_NETS_ENABLE', '2.27.5'],
  ['NCCL_NETDEVS_POLICY', '2.28.3'],
  ['NCCL_MNNVL_RAIL_PER_HOST', '2.28.7'],
  ['NCCL_P2P_SCHEDULE_GROUP_SIZE', '2.28.7'],
  ['NCCL_P2P_PER_CHANNEL_NET_BW', '2.29.2'],
  ['NCCL_IGNORE_COLLNET_MISMATCH', '2.30.3'],
  ['NCCL_IGNORE_NET_MISMATCH', '2.30.3'],
  ['NCCL_P2P_MAX_PEERS', '2.30.3'],
  ['NCCL_NET_GDR_MLOPART', '2.30.7'],
  ['NCCL_NET_MERGE_POLICY', '2.30.7'],
  ['NCCL_TOPO_SPLIT_MLOPART', '2.30.7'],
  ['NCCL_TOPO_SCATTER_START_NET', '2.31.2'],
]);

/** First version with the variable, if the given version lacks it. */
export function missingUntil(variable: string, version: string): string | undefined {
  const since = variableSince.get(variable);
  return since !== undefined && compareVersions(version, since) < 0 ? since : undefined;
}
