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
  ['NCCL_CTA_POLICY', '2.27.3'],
  ['NCCL_SYM_CTAS', '2.27.3'],
  ['NCCL_SYM_KERNEL', '2.27.3'],
  ['NCCL_WIN_ENABLE', '2.27.3'],
  ['NCCL_MNNVL_SCATTER_NETS_ENABLE', '2.27.5'],
  ['NCCL_NETDEVS_POLICY', '2.28.3'],
  ['NCCL_MNNVL_RAIL_PER_HOST', '2.28.7'],
  ['NCCL_GIN_ENABLE', '2.28.7'],
  ['NCCL_P2P_SCHEDULE_GROUP_SIZE', '2.28.7'],
  ['NCCL_P2P_PER_CHANNEL_NET_BW', '2.29.2'],
  ['NCCL_SYM_CE_THRESHOLD', '2.29.2'],
  ['NCCL_SYM_NOWIN_ENABLE', '2.29.2'],
  ['NCCL_SYM_GIN_KERNELS_ENABLE', '2.29.7'],
  ['NCCL_IGNORE_COLLNET_MISMATCH', '2.30.3'],
  ['NCCL_IGNORE_NET_MISMATCH', '2.30.3'],
  ['NCCL_P2P_MAX_PEERS', '2.30.3'],
  ['NCCL_SYM_TMA_ENABLE', '2.30.3'],
  ['NCCL_NET_GDR_MLOPART', '2.30.7'],
  ['NCCL_NET_MERGE_POLICY', '2.30.7'],
  ['NCCL_SYM_RS_GIN_CHUNK_SIZE', '2.30.7'],
  ['NCCL_TOPO_SPLIT_MLOPART', '2.30.7'],
  ['NCCL_TOPO_SCATTER_START_NET', '2.31.2'],
]);

/** For variables of which only the range of releases is known. */
const UNKNOWN_RELEASE = '2.31 or 2.32 (it is not known which)';

/**
 * Variables that no plan depends on and that 2.30.7 lacks, with the release that brought them as far as it is known: release
 * notes and files of 2.31 and 2.32 name them.
 */
export const newVariables: ReadonlyMap<string, string> = new Map([
  ['NCCL_GDRCOPY_USE_INTERNAL_DMABUF', '2.31.2'],
  ['NCCL_GIN_PROXY_POLL_BATCH', '2.31.2'],
  ['NCCL_GIN_PROXY_NTHREADS', UNKNOWN_RELEASE],
  ['NCCL_HIER_CE_COLL_AG_RAIL_RING_ENABLE', UNKNOWN_RELEASE],
  ['NCCL_IB_RAIL_POLICY', UNKNOWN_RELEASE],
  ['NCCL_PROGRESS_COUNTER_MONITOR_POLL_MS', UNKNOWN_RELEASE],
  ['NCCL_PROGRESS_COUNTER_MONITOR_STALE_MS', UNKNOWN_RELEASE],
  ['NCCL_PROGRESS_COUNTER_MONITOR_STALE_WARN_SEC', UNKNOWN_RELEASE],
  ['NCCL_PROGRESS_COUNTERS', UNKNOWN_RELEASE],
  ['NCCL_PSK', UNKNOWN_RELEASE],
  ['NCCL_RMA_MULTI_CTX_THRESHOLD', UNKNOWN_RELEASE],
  ['NCCL_RUN_DIAGNOSTICS', '2.31.2'],
  ['NCCL_RUN_RAS_DIAGNOSTICS', '2.31.2'],
]);

/** First version with the variable, if the given version lacks it. */
export function missingUntil(variable: string, version: string): string | undefined {
  const since = variableSince.get(variable) ?? newVariables.get(variable);
  const oldest = since === UNKNOWN_RELEASE ? '2.31.2' : since;
  return oldest !== undefined && compareVersions(version, oldest) < 0 ? since : undefined;
}
