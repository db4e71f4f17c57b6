import type { LogFinding } from '../finding.js';
import { isInitialised } from '../outcome.js';
import type { LogModel } from '../model.js';

/** A network plugin that is older than NCCL and found no device: NCCL fell back to sockets. */
export function checkPlugins(model: LogModel): LogFinding[] {
  const old = model.processes.find(({ plugin, pluginSought, network, devices }) => plugin !== undefined && pluginSought !== undefined
    && plugin.version < pluginSought && network?.name === 'Socket' && ![...devices].some(([name, { devices: list }]) => name !== 'Socket' && list.length > 0));
  if (old?.plugin === undefined || isInitialised(model)) return [];
  const { plugin, pluginSought, network } = old;
  return [{
    code: 'plugin-old', severity: 'error', kind: 'failure', explains: ['no-rdma', 'ib-disabled'],
    problem: `the network plugin ${plugin.name} has version ${plugin.version} of the interface, NCCL looked for version ${pluginSought ?? ''}; it found no device, and NCCL fell back to sockets`,
    cause: 'the plugin (HPC-X, nccl-rdma-sharp-plugins) is older than NCCL and hides NCCL\'s own InfiniBand code',
    remedy: 'NCCL_NET_PLUGIN=none, or take the plugin out of LD_LIBRARY_PATH; or install the one that fits this NCCL',
    places: [plugin.place, ...(network === undefined ? [] : [network.place])], source: 'NVIDIA/nccl#941',
  }];
}
