import type { LogFinding, LogFindingCode, LogSeverity } from './finding.js';
import type { LoggedProcess, LogModel } from '../job/model.js';
import { isOnOneHost } from '../job/outcome.js';

interface CostlySetting {
  readonly code: LogFindingCode;
  readonly name: string;
  readonly values: RegExp;
  /** Jobs in which it has a cost: any, only those on several hosts, or so few that it is a remark. */
  readonly costs: 'between-gpus' | 'network' | 'seldom';
  readonly effect: string;
  readonly cause: string;
}

/** Settings left over from debugging, or copied from a recipe. */
const settings: readonly CostlySetting[] = [
  {
    code: 'p2p-disabled',
    name: 'NCCL_P2P_DISABLE',
    values: /^1$/,
    costs: 'between-gpus',
    effect: "GPUs of one host exchange data through the host's memory in place of NVLink or PCIe",
    cause: 'often left in as a workaround for a hang',
  },
  {
    code: 'p2p-disabled',
    name: 'NCCL_P2P_LEVEL',
    values: /^(?:LOC|0)$/i,
    costs: 'between-gpus',
    effect: "GPUs of one host exchange data through the host's memory",
    cause: 'often left in as a workaround for a hang',
  },
  {
    code: 'shm-disabled',
    name: 'NCCL_SHM_DISABLE',
    values: /^1$/,
    costs: 'between-gpus',
    effect: 'GPUs without P2P talk through the network inside their host',
    cause: 'often left in as a workaround for a small /dev/shm',
  },
  {
    code: 'ib-disabled',
    name: 'NCCL_IB_DISABLE',
    values: /^1$/,
    costs: 'network',
    effect: 'hosts talk over TCP though InfiniBand or RoCE may be there',
    cause: 'often left in as a workaround for an error of InfiniBand',
  },
  {
    code: 'net-socket',
    name: 'NCCL_NET',
    values: /^socket$/i,
    costs: 'network',
    effect: 'hosts talk over TCP, whatever else there is',
    cause: 'a setting of a recipe or a workaround',
  },
  {
    code: 'gdr-disabled',
    name: 'NCCL_NET_GDR_LEVEL',
    values: /^(?:LOC|0)$/i,
    costs: 'network',
    effect: "NICs do not reach GPU memory directly; data goes through the host's memory",
    cause: 'often left in as a workaround',
  },
  {
    code: 'gdr-disabled',
    name: 'NCCL_IB_CUDA_SUPPORT',
    values: /^0$/,
    costs: 'network',
    effect: 'NICs do not reach GPU memory directly',
    cause: 'an old setting',
  },
  {
    code: 'nvls-disabled',
    name: 'NCCL_NVLS_ENABLE',
    values: /^0$/,
    costs: 'seldom',
    effect: 'NVLink SHARP is off: large all-reduces on NVSwitch machines are slower',
    cause: "a workaround, or a framework's default",
  },
  {
    code: 'cumem-disabled',
    name: 'NCCL_CUMEM_ENABLE',
    values: /^0$/,
    costs: 'seldom',
    effect: "NCCL does not use CUDA's virtual memory: no NVLS, no multi-node NVLink, no symmetric memory",
    cause: "a framework's default (vLLM) or a workaround",
  },
  {
    code: 'p2p-check-ignored',
    name: 'NCCL_IGNORE_DISABLED_P2P',
    values: /^1$/,
    costs: 'seldom',
    effect: 'NCCL no longer warns of P2P that is refused',
    cause: 'a workaround',
  },
  {
    code: 'channels-limited',
    name: 'NCCL_MAX_NCHANNELS',
    values: /^[1-4]$/,
    costs: 'seldom',
    effect: 'few channels: large operations do not reach the bandwidth of the links',
    cause: 'to save memory or SMs',
  },
  {
    code: 'protocol-forced',
    name: 'NCCL_PROTO',
    values: /^[^^].*/,
    costs: 'seldom',
    effect: 'NCCL does not choose the protocol by size',
    cause: 'a test that was left in',
  },
  {
    code: 'algorithm-forced',
    name: 'NCCL_ALGO',
    values: /^[^^].*/,
    costs: 'seldom',
    effect: 'NCCL does not choose the algorithm by size',
    cause: 'a test that was left in',
  },
];

/** Findings that such settings cause. */
const effects: Readonly<Record<CostlySetting['costs'], readonly LogFindingCode[]>> = {
  'between-gpus': ['shm-despite-nvlink', 'network-inside-host', 'p2p-unsupported', 'bandwidth-low'],
  network: ['no-rdma', 'socket-despite-ib', 'gdr-off', 'bandwidth-low'],
  seldom: [],
};

/** Reports settings of the log that are in effect and cost bandwidth. */
export function checkSettings(model: LogModel): LogFinding[] {
  return settings.flatMap((setting) => {
    const having = model.processes.filter(({ environment }) => setting.values.test(environment.get(setting.name)?.value ?? ''));
    const [first] = having;
    return first === undefined ? [] : [finding(setting, first, model)];
  });
}

function finding({ code, name, costs, effect, cause }: CostlySetting, process: LoggedProcess, model: LogModel): LogFinding {
  const setting = process.environment.get(name);
  const severity: LogSeverity =
    costs === 'seldom' || (costs === 'network' ? isOnOneHost(model) : hasOneGpuPerHost(model)) ? 'info' : 'warning';
  return {
    code,
    severity,
    kind: severity === 'info' ? 'note' : 'cost',
    problem: `${name}=${setting?.value ?? ''} is set: ${effect}`,
    cause,
    remedy: `unset ${name}, also in /etc/nccl.conf and ~/.nccl.conf, and measure`,
    places: setting === undefined ? [] : [setting.place],
    explains: effects[costs],
  };
}

function hasOneGpuPerHost({ communicators }: LogModel): boolean {
  return communicators.length > 0 && communicators.every(({ nRanks, nNodes, nRanksKnown }) => nRanksKnown && nNodes === nRanks);
}
