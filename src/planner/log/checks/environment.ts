import { counted } from '../../../counted.js';
import type { LogFinding } from './finding.js';
import type { LoggedProcess } from '../job/model.js';

/** Settings that may differ among processes. */
const own = new Set([
  'NCCL_DEBUG_FILE',
  'NCCL_COMM_ID',
  'NCCL_HOSTID',
  'NCCL_TOPO_DUMP_FILE',
  'NCCL_GRAPH_DUMP_FILE',
  'NCCL_SOCKET_IFNAME',
  'NCCL_OOB_NET_IFNAME',
  'NCCL_RAS_ADDR',
  'NCCL_TOPO_FILE',
]);

/** Settings that choose algorithms or channels: where they differ, ranks may call different kernels and hang. */
const decisive = new Set([
  'NCCL_ALGO',
  'NCCL_PROTO',
  'NCCL_NTHREADS',
  'NCCL_BUFFSIZE',
  'NCCL_MIN_NCHANNELS',
  'NCCL_MAX_NCHANNELS',
  'NCCL_MIN_CTAS',
  'NCCL_MAX_CTAS',
  'NCCL_NVLS_ENABLE',
  'NCCL_COLLNET_ENABLE',
  'NCCL_CROSS_NIC',
  'NCCL_P2P_LEVEL',
  'NCCL_P2P_DISABLE',
  'NCCL_SHM_DISABLE',
  'NCCL_NET',
  'NCCL_IB_DISABLE',
]);

/** The most values of one setting that are compared. */
const VALUE_LIMIT = 100;

/**
 * Checks that settings are the same everywhere. Not every process reads every setting, so only other values count, or hosts
 * without any.
 */
export function checkEnvironment(processes: readonly LoggedProcess[]): LogFinding[] {
  const names = new Set(processes.flatMap(({ environment }) => [...environment.keys()]));
  return [...names]
    .filter((name) => !own.has(name))
    .sort()
    .flatMap((name): LogFinding[] => {
      const byValue = new Map<string, LoggedProcess[]>();
      for (const process of processes) {
        const value = process.environment.get(name)?.value;
        if (value === undefined) continue;
        const same = byValue.get(value);
        if (same !== undefined) same.push(process);
        else if (byValue.size < VALUE_LIMIT) byValue.set(value, [process]);
      }
      const whole = [...byValue].filter(
        ([value]) => ![...byValue.keys()].some((other) => other !== value && other.startsWith(value)),
      );
      const [usual, ...others] = whole.sort(([, a], [, b]) => b.length - a.length);
      if (usual === undefined) return [];
      const places = [usual, ...others].flatMap(([, [first]]) => first?.environment.get(name)?.place ?? []);
      const remedy = `give every rank the same ${name} (mpirun -x ${name}, srun --export=ALL, the pod's env)`;
      if (others.length > 0) {
        return [
          {
            code: 'environment-differs',
            severity: 'warning',
            kind: decisive.has(name) ? 'failure' : 'risk',
            problem: `${name} is ${usual[0]} in ${counted(usual[1].length, 'process', 'processes')}, but ${others
              .slice(0, 4)
              .map(([value, [first]]) => `${value} on ${first?.host ?? ''}`)
              .join(', ')}`,
            cause: decisive.has(name)
              ? 'ranks that decide differently may call different kernels, and hang'
              : 'a shell profile, /etc/nccl.conf or an image differs between hosts',
            remedy,
            places,
          },
        ];
      }
      const without = hostsWithout(processes, name);
      return without === undefined
        ? []
        : [
            {
              code: 'environment-differs',
              severity: 'warning',
              kind: 'risk',
              problem: `${name}=${usual[0]} is set in every process of ${counted(without.having, 'host')}, and in none of ${without.lacking.slice(0, 8).join(', ')}`,
              cause: 'the setting does not reach those hosts',
              remedy,
              places,
            },
          ];
    });
}

/**
 * Hosts whose processes all lack the setting, if all processes of all other hosts have it and the log contains their settings.
 */
function hostsWithout(
  processes: readonly LoggedProcess[],
  name: string,
): { readonly having: number; readonly lacking: readonly string[] } | undefined {
  const hosts = new Map<string, { all: number; having: number; whole: boolean }>();
  for (const { host, environment, network } of processes) {
    const counts = hosts.get(host) ?? { all: 0, having: 0, whole: false };
    counts.all++;
    if (environment.has(name)) counts.having++;
    // An excerpt may begin after the settings.
    if (network !== undefined) counts.whole = true;
    hosts.set(host, counts);
  }
  if ([...hosts.values()].some(({ all, having, whole }) => (having !== 0 && having !== all) || (having === 0 && !whole)))
    return undefined;
  const lacking = [...hosts].filter(([, { having }]) => having === 0);
  const having = hosts.size - lacking.length;
  if (having === 0 || lacking.length === 0) return undefined;
  return { having, lacking: lacking.map(([host]) => host) };
}
