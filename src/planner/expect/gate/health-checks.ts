import type { Threshold } from './thresholds.js';

/** Shape of the cluster, for the arguments of health checks. */
export interface CheckedCluster {
  readonly nHosts: number;
  readonly gpusPerHost: number;
  readonly nicsPerHost: number;
  /** Gb/s. */
  readonly netGbps: number;
}

/** A health check that takes a threshold of bus bandwidth. */
export interface HealthCheck {
  readonly name: string;
  readonly about: string;
  /** True if it runs on one host: its threshold is that of one host. */
  readonly isOneHost: boolean;
  /** Sizes whose mean it compares. */
  readonly bytes: number;
  /** Lines of its configuration. */
  lines(threshold: Threshold, cluster: CheckedCluster): readonly string[];
}

/** Part of `NCCL_TESTS_MIN_BW` below which a program of nccl-tests fails. */
const TESTS_TOLERANCE = 0.9;
const GIB = 2 ** 30;

/** Formats of `--for`. Each reads the mean over all sizes that it measures, therefore each measures one. */
export const healthChecks: readonly HealthCheck[] = [
  {
    name: 'nccl-tests',
    about: 'environment of all_reduce_perf, which then exits with 1 (src/common.cu: fails below 0.9 of NCCL_TESTS_MIN_BW)',
    isOneHost: false,
    bytes: 16 * GIB,
    lines: ({ leastGBps, test, bytes }) => [
      `# ${test}_perf -b ${size(bytes)} -e ${size(bytes)} -g 1`,
      `NCCL_TESTS_MIN_BW=${floor(leastGBps / TESTS_TOLERANCE)}`,
    ],
  },
  {
    name: 'aznhc',
    about: 'lines of a configuration of Azure’s node health checks (customTests/azure_nccl_allreduce.nhc): one host',
    isOneHost: true,
    bytes: 16 * GIB,
    lines: ({ leastGBps, bytes }, { gpusPerHost }) => [
      `# check_nccl_allreduce BANDWIDTH REPEATS TOPOLOGY SIZE: give the file of your machine as TOPOLOGY`,
      ` * || check_gpu_count ${gpusPerHost}`,
      ` * || check_nccl_allreduce ${floor(leastGBps)} 1 "$NCCL_TOPO_FILE" ${size(bytes)}`,
    ],
  },
  {
    name: 'chs',
    about: 'environment of nccl-healthcheck of Google’s cluster health scanner, which rounds the measured mean down',
    isOneHost: false,
    bytes: 8 * GIB,
    lines: ({ leastGBps, bytes }, { nHosts, gpusPerHost }) => [
      `NHOSTS=${nHosts}`,
      `nr=${gpusPerHost}`,
      `START_MESSAGE_SIZE=${size(bytes)}`,
      `END_MESSAGE_SIZE=${size(bytes)}`,
      `BANDWIDTH_THRESHOLD=${Math.floor(leastGBps)}`,
    ],
  },
  {
    name: 'nvsentinel',
    about: 'environment of preflight-nccl-allreduce of NVIDIA’s NVSentinel',
    isOneHost: false,
    bytes: 8 * GIB,
    lines: ({ leastGBps, bytes }) => [`MESSAGE_SIZES=${size(bytes)}`, `BW_THRESHOLD_GBPS=${floor(leastGBps)}`],
  },
  {
    name: 'nvsentinel-loopback',
    about: 'environment of preflight-nccl-loopback of NVIDIA’s NVSentinel: one host',
    isOneHost: true,
    bytes: GIB,
    lines: ({ leastGBps, bytes }) => [`TEST_SIZE_MB=${bytes / 2 ** 20}`, `BW_THRESHOLD_GBPS=${floor(leastGBps)}`],
  },
];

/** Down to a tenth: a threshold is never rounded up. */
function floor(gbps: number): string {
  return (Math.floor(10 * gbps) / 10).toFixed(1);
}

/** `16G`, as nccl-tests reads it. */
function size(bytes: number): string {
  return bytes % GIB === 0 ? `${bytes / GIB}G` : `${bytes / 2 ** 20}M`;
}
