import { counted } from '../../../counted.js';
import type { GpuModel } from '../../topology/catalogue/gpus.js';
import { gpuOfProduct } from '../../topology/catalogue/products.js';
import type { LogFinding } from './finding.js';
import { isInitialised, isOnOneHost } from '../job/outcome.js';
import type { LogModel } from '../job/model.js';

/** Checks for networks that NCCL could not use: an old plugin, a fabric behind TCP. */
export function checkPlugins(model: LogModel): LogFinding[] {
  return [
    ...oldPlugin(model),
    ...someWithPlugin(model),
    ...fabricOverTcp(model),
    ...devicesNotFound(model),
    ...fastGpusOverTcp(model),
    ...onlyLoopback(model),
  ];
}

/** Interfaces that belong to a fast fabric, by their names. */
const fabrics = [
  {
    form: /^hsn\d/,
    name: 'Slingshot',
    remedy: "load aws-ofi-nccl with libfabric's cxi provider (LD_LIBRARY_PATH to its libnccl-net.so; FI_PROVIDER=cxi)",
  },
  {
    form: /^ib(?:\d|[ps]\d)/,
    name: 'InfiniBand',
    remedy:
      '`ibv_devinfo` on that host and in the container (docker run --device=/dev/infiniband --ulimit memlock=-1); unset NCCL_IB_DISABLE and NCCL_NET',
  },
] as const;

/** Finds TCP on the IP interface of a fabric that NCCL could use directly. */
function fabricOverTcp(model: LogModel): LogFinding[] {
  if (isOnOneHost(model)) return [];
  for (const { network, devices } of model.processes) {
    const names = devices.get('Socket')?.devices.map(({ name }) => name) ?? [];
    const fabric = network?.name === 'Socket' ? fabrics.find(({ form }) => names.some((name) => form.test(name))) : undefined;
    if (fabric === undefined || network === undefined) continue;
    return [
      {
        code: 'fabric-over-tcp',
        severity: 'warning',
        kind: 'cost',
        explains: ['no-rdma', 'bandwidth-low'],
        problem: `NCCL talks TCP over ${names
          .filter((name) => fabric.form.test(name))
          .slice(0, 4)
          .join(', ')}, the IP interface of ${fabric.name}, and does not use ${fabric.name} itself`,
        cause: 'its plugin or verbs are missing in this image, or a setting switches them off',
        remedy: fabric.remedy,
        places: [network.place],
      },
    ];
  }
  return [];
}

/** Finds networks that differ between hosts and so cannot communicate. */
function someWithPlugin(model: LogModel): LogFinding[] {
  const having = model.processes.find(({ pluginPath }) => pluginPath !== undefined && pluginPath.path !== '');
  const lacking = model.processes.find(({ pluginPath, host }) => pluginPath?.path === '' && host !== having?.host);
  if (having?.pluginPath === undefined || lacking?.pluginPath === undefined || isInitialised(model)) return [];
  return [
    {
      code: 'net-mismatch',
      severity: 'error',
      kind: 'failure',
      explains: ['init-unfinished', 'remote-closed', 'ib-retry-exceeded', 'environment-differs'],
      problem: `${having.host} uses the network plugin ${having.pluginPath.path}, ${lacking.host} has none`,
      cause: 'images or LD_LIBRARY_PATH differ; the plugin of one host may not understand the network code of the other',
      remedy: 'use one image on all hosts, or NCCL_NET_PLUGIN=none on all',
      places: [having.pluginPath.place, lacking.pluginPath.place],
      source: 'NVIDIA/nccl#1634',
    },
  ];
}

/** Finds TCP over the loopback interface alone, which reaches no other host. */
function onlyLoopback(model: LogModel): LogFinding[] {
  if (isOnOneHost(model) || isInitialised(model)) return [];
  for (const { devices, network } of model.processes) {
    const list = devices.get('Socket');
    if (network?.name !== 'Socket' || list === undefined || list.devices.length === 0) continue;
    if (!list.devices.every(({ name }) => name === 'lo')) continue;
    return [
      {
        code: 'interface-loopback',
        severity: 'warning',
        kind: 'failure',
        explains: ['connect-failed', 'no-rdma', 'ib-disabled', 'init-unfinished'],
        problem: 'NCCL talks over the loopback interface lo: ranks of other hosts cannot be reached',
        cause: 'NCCL_SOCKET_IFNAME=lo, or no other interface is up in this container',
        remedy: 'NCCL_SOCKET_IFNAME=<the interface that all hosts share, such as eth0>; nothing, if all ranks are on one host',
        places: [list.place],
      },
    ];
  }
  return [];
}

/** Finds an NCCL_IB_HCA whose NICs NCCL did not find. */
function devicesNotFound(model: LogModel): LogFinding[] {
  if (isOnOneHost(model)) return [];
  for (const { environment, devices, network, host } of model.processes) {
    const named = environment.get('NCCL_IB_HCA');
    const found = devices.get('IB');
    if (named === undefined || named.value.startsWith('^') || found === undefined || found.devices.length > 0) continue;
    if (network?.name !== 'Socket') continue;
    return [
      {
        code: 'no-rdma',
        severity: 'warning',
        kind: 'cost',
        explains: ['bandwidth-low'],
        problem: `NCCL_IB_HCA names ${named.value}, but NCCL found no such device${host === '' ? '' : ` on ${host}`} and talks TCP`,
        cause: 'the names are wrong, the ports are down, or the container does not have the devices or their libraries',
        remedy:
          '`ibv_devinfo` in the container; docker run --device=/dev/infiniband --ulimit memlock=-1; Kubernetes: request the RDMA resource',
        places: [named.place, found.place],
      },
    ];
  }
  return [];
}

/** Finds hosts whose GPUs are made for clusters, and that talk TCP because NCCL found no RDMA device. */
function fastGpusOverTcp(model: LogModel): LogFinding[] {
  const { communicators, processes, tables } = model;
  if (isOnOneHost(model) || new Set(processes.map(({ host }) => host)).size < 2) return [];
  const records = communicators.flatMap(({ ranks }) => [...ranks.values()]);
  // Where connections are in the log, they are judged.
  if (records.some(({ nvlink, links }) => nvlink && links.some(({ transport }) => transport.network === 'Socket'))) return [];
  const gpu = tables.flatMap(({ run }) => run.gpus).find((product) => isClusterGpu(gpuOfProduct(product)));
  if (gpu === undefined && !records.some(({ nvlink }) => nvlink)) return [];
  const over = processes.filter(
    ({ network, devices, environment }) =>
      network?.name === 'Socket' && devices.get('IB')?.devices.length === 0 && !environment.has('NCCL_IB_HCA'),
  );
  const hosts = new Set(over.map(({ host }) => host));
  if (hosts.size === 0) return [];
  return [
    {
      code: 'no-rdma',
      severity: 'warning',
      kind: 'cost',
      explains: ['bandwidth-low'],
      problem: `data between hosts go over TCP sockets; no RDMA device was found on ${counted(hosts.size, 'host')}${gpu === undefined ? ', though their GPUs have NVLink' : ` with ${gpu}`}`,
      cause:
        'NCCL found no InfiniBand or RoCE device: the container does not have the devices or their libraries, the ports are down, or a plugin of the cloud is missing',
      remedy:
        '`ibv_devinfo` on the host and in the container; docker run --device=/dev/infiniband --ulimit memlock=-1; Kubernetes: request the RDMA resource; in a cloud, install its plugin',
      places: over
        .flatMap(({ devices, network }) => [devices.get('IB')?.place, network?.place])
        .filter((place) => place !== undefined)
        .slice(0, 4),
    },
  ];
}

/** GPUs that are sold in machines with a NIC for each or two of them. */
function isClusterGpu(gpu: GpuModel | undefined): boolean {
  return gpu?.gdr === true && (gpu.nvlink === 'switch' || gpu.nvlink === 'board' || gpu.nvlinks >= 12 || gpu.id === 'l40s');
}

/** Finds a network plugin that is older than NCCL and found no device, so NCCL fell back to sockets. */
function oldPlugin(model: LogModel): LogFinding[] {
  const old = model.processes.find(
    ({ plugin, pluginSought, network, devices }) =>
      plugin !== undefined &&
      pluginSought !== undefined &&
      plugin.version < pluginSought &&
      network?.name === 'Socket' &&
      ![...devices].some(([name, { devices: list }]) => name !== 'Socket' && list.length > 0),
  );
  if (old?.plugin === undefined || isInitialised(model)) return [];
  const { plugin, pluginSought, network } = old;
  return [
    {
      code: 'plugin-old',
      severity: 'error',
      kind: 'failure',
      explains: ['no-rdma', 'ib-disabled'],
      problem: `the network plugin ${plugin.name} has version ${plugin.version} of the interface, NCCL looked for version ${pluginSought ?? ''}; it found no device, and NCCL fell back to sockets`,
      cause: "the plugin (HPC-X, nccl-rdma-sharp-plugins) is older than NCCL and hides NCCL's own InfiniBand code",
      remedy: 'NCCL_NET_PLUGIN=none, or take the plugin out of LD_LIBRARY_PATH; or install the one that fits this NCCL',
      places: [plugin.place, ...(network === undefined ? [] : [network.place])],
      source: 'NVIDIA/nccl#941',
    },
  ];
}
