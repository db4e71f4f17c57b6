import { gpuOfProduct } from '../../topology/catalogue/products.js';
import type { LogModel } from '../job/model.js';
import { isOnOneHost } from '../job/outcome.js';

/** First thing to look at where a job on this machine hangs and no line says why, by the ways that its data take. */
export function firstSuspicion(model: LogModel): string {
  const records = model.communicators.flatMap(({ ranks }) => [...ranks.values()]);
  const transports = records.flatMap(({ links }) => links.map(({ transport }) => transport));
  const way = wayOfP2p(model);
  const networks = new Set([
    ...transports.flatMap(({ family, network }) => (family === 'NET' ? [network ?? ''] : [])),
    ...(isOnOneHost(model) ? [] : model.processes.flatMap(({ network }) => network?.name ?? [])),
  ]);
  const hosts = new Set(model.processes.map(({ host }) => host));
  if (hosts.size > 1 && networks.has('IB'))
    return 'First on these hosts: `show_gids` and `ibstat` (RoCE needs a GID with an IPv4 address on both sides), `ib_write_bw` between the NICs of both hosts, then a run with NCCL_NET_GDR_LEVEL=LOC (if it works, PCIe ACS or nvidia-peermem is at fault)';
  if (hosts.size > 1 && networks.has('Socket'))
    return 'First on these hosts: open all ports between them (firewall, security group), `ip addr` on both (the same interface and MTU; NCCL_SOCKET_IFNAME), `ping -M do -s 8972` for jumbo frames';
  if (hosts.size > 1 && networks.size > 0)
    return 'First on these hosts: `fi_info`; on EFA the security group must allow all traffic from and to itself';
  if (transports.some(({ family }) => family === 'P2P') && way === undefined)
    return 'First on this machine, whose GPUs exchange data by P2P: a run with NCCL_P2P_DISABLE=1; if it works, P2P is broken: `nvidia-smi topo -m` shows its way (NV#: `nvidia-smi nvlink -e` and `dmesg -T`; else PCIe: `lspci -vvv`, ACSCtl must have no ReqRedir+)';
  if (transports.some(({ family }) => family === 'P2P') && way === 'pcie')
    return 'First on this machine, whose GPUs exchange data by P2P over PCIe: ACS and the IOMMU (`lspci -vvv`: ACSCtl must have no ReqRedir+; `cat /proc/cmdline`); a run with NCCL_P2P_DISABLE=1 decides: if it works, P2P is broken';
  if (way === 'nvlink')
    return 'First on this machine with NVLink: `nvidia-smi -q` (Fabric: Completed, Success), `nvidia-smi nvlink -e`, `dmesg -T` (Xid); then a run with NCCL_NVLS_ENABLE=0, and one with NCCL_P2P_DISABLE=1';
  if (transports.some(({ family }) => family === 'SHM'))
    return 'First on this machine, whose GPUs exchange data through shared memory: `df -h /dev/shm`; a run with NCCL_SHM_DISABLE=1 decides';
  return 'First: `dmesg -T` (Xid) on every host, and a run of all_reduce_perf on the same GPUs';
}

/** The way of P2P on these machines, where searches, topologies or names of GPUs show it: its name in a channel does not. */
function wayOfP2p({ communicators, machines, tables }: LogModel): 'nvlink' | 'pcie' | undefined {
  const records = communicators.flatMap(({ ranks }) => [...ranks.values()]);
  const wires = machines.flatMap((machine) => machine.wires);
  const kinds = tables.flatMap(({ run }) => run.gpus).map((product) => gpuOfProduct(product)?.nvlink);
  if (records.some(({ nvlink }) => nvlink) || wires.some(({ type }) => type === 'NVL')) return 'nvlink';
  if (records.some(({ searches }) => searches.size > 0) || wires.length > 0) return 'pcie';
  if (kinds.some((kind) => kind === 'switch' || kind === 'board')) return 'nvlink';
  return kinds.length > 0 && kinds.every((kind) => kind === 'none') ? 'pcie' : undefined;
}
