import { InputError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import type { LocalSystem } from '../../topology/local-systems.js';
import { GpuDirect } from '../../topology/paths/gdr.js';
import { Locality } from '../../topology/paths/locality.js';
import { Reach } from '../../topology/paths/reach.js';
import { NodeType, PathType } from '../../topology/types.js';
import { type ChannelGraph, nodeId } from '../graph.js';
import type { NetConnection, NoP2pReason } from './connection.js';

/** Transports between ranks of a node. Ranks are counted within the host here. */
type LocalTransport =
  | { readonly via: 'P2P'; readonly read: boolean; readonly relay: number | undefined; readonly distance: PathType }
  | { readonly via: 'SHM'; readonly reason: NoP2pReason }
  | { readonly via: 'NET'; readonly reason: Exclude<NetConnection['reason'], { readonly why: 'other-host' }> }
  | { readonly via: 'none'; readonly reason: NoP2pReason };

/** Use of the network by a rank on a channel. Ranks are counted within the host here. */
type NetUse = Pick<NetConnection, 'dev' | 'relay' | 'proxyRank' | 'gdr' | 'gdrReason' | 'distance'>;

/** GPUs that read from each other over NVLink by default are of this compute capability. */
const READS_OVER_NV_LINK = 80;

/**
 * Connections of the ranks of one node, decided on its graph: peer-to-peer where GPUs may, otherwise shared memory, otherwise the
 * network; for the network, with its device and relay GPU.
 */
export class NodeTransports {
  readonly #local: LocalSystem;
  readonly #parameters: Parameters;
  readonly #reach: Reach;
  readonly #gpuDirect: GpuDirect;
  readonly #gpuOfRank: ReadonlyMap<number, number>;
  readonly #netOfId: ReadonlyMap<bigint, number>;

  constructor(local: LocalSystem, parameters: Parameters) {
    const { system, paths } = local;
    this.#local = local;
    this.#parameters = parameters;
    this.#reach = new Reach(system, paths, parameters);
    this.#gpuDirect = new GpuDirect(system, paths, new Locality(system, paths, parameters), parameters);
    this.#gpuOfRank = new Map(system.gpus.map(({ rank, index }) => [rank, index]));
    // Of several devices with the same id NCCL finds the first.
    this.#netOfId = new Map([...system.nets].reverse().map((net) => [nodeId(net), net.index]));
  }

  /** @throws InputError where NCCL fails: a relay that no rank uses */
  between(rank: number, peer: number): LocalTransport {
    const from = this.#gpu(rank);
    const to = this.#gpuOfRank.get(peer);
    if (to === undefined) return this.#withoutPath({ why: 'other-node' });

    const { p2pUseCudaMemcpy } = this.#parameters;
    const distance = this.#reach.pathType(from, to);
    const relay = this.#reach.relay(from, to);
    if (this.#reach.connectsByP2p(from, to) && (relay < 0 || p2pUseCudaMemcpy === 0)) {
      return { via: 'P2P', read: this.#reads(from, to), relay: relay < 0 ? undefined : this.#rankOf(relay), distance };
    }
    if (this.#reach.isNetFaster(from, to)) return { via: 'NET', reason: { why: 'faster' } };
    const isRefused = this.#parameters.p2pDisable !== 1 && this.#reach.driverRefuses(from, to);
    const noP2p: NoP2pReason = isRefused ? { why: 'driver' } : this.#noP2p(distance, relay);
    if (this.#reach.connectsByShm(from, to)) return { via: 'SHM', reason: noP2p };
    return this.#reach.onOneHost(from, to) ? { via: 'none', reason: noP2p } : { via: 'NET', reason: { why: 'no-shm', noP2p } };
  }

  /**
   * The device that a channel of a graph uses at a rank: the one that the search gave to the end where the rank is.
   *
   * @param channel one of the graph's channels
   * @throws InputError where the search found no device there, or no rank uses the GPU on the way to it
   */
  net(graph: ChannelGraph, channel: number, rank: number, direction: 'send' | 'receive'): NetUse {
    const end = graph.intra[channel * graph.gpuCount] === rank ? 0 : 1;
    const net = this.#netOfId.get(graph.inter[channel * 2 + end] ?? -1n);
    const device = net === undefined ? undefined : this.#local.system.nets[net];
    if (net === undefined || device === undefined) {
      throw new InputError(
        'NO_PATH',
        `channel ${channel} has no network device at rank ${rank}, though it leaves the node there`,
        { ncclResult: 3 },
      );
    }
    const gpu = this.#gpu(rank);
    const near = this.#gpuDirect.proxyGpu(gpu, net);
    const relay = near === gpu ? undefined : this.#rankOf(near);
    const { mode, reason } = this.#gpuDirect.decide(gpu, net, direction === 'send' ? 'read' : 'write');
    const { paths } = this.#local;
    return {
      dev: device.dev,
      relay,
      proxyRank: direction === 'send' ? (relay ?? rank) : rank,
      gdr: mode,
      gdrReason: reason,
      distance: (paths.type[paths.between(NodeType.GPU, near, NodeType.NET, net)] ?? PathType.DIS) as PathType,
    };
  }

  /** Connection to a peer on the same host that is not in the graph: NCCL does not check whether the network is faster. */
  #withoutPath(noP2p: NoP2pReason): LocalTransport {
    if (this.#parameters.shmDisable !== 1) return { via: 'SHM', reason: noP2p };
    return this.#parameters.netDisableIntra === 1
      ? { via: 'none', reason: noP2p }
      : { via: 'NET', reason: { why: 'no-shm', noP2p } };
  }

  #noP2p(distance: PathType, relay: number): NoP2pReason {
    if (distance > this.#reach.p2pLevel) return { why: 'far', distance, level: this.#reach.p2pLevel };
    return relay >= 0 && this.#parameters.p2pUseCudaMemcpy !== 0 ? { why: 'copy-engine' } : { why: 'driver' };
  }

  #reads(from: number, to: number): boolean {
    const { p2pReadEnable, p2pUseCudaMemcpy } = this.#parameters;
    if (p2pUseCudaMemcpy !== 0) return false;
    if (p2pReadEnable !== undefined) return p2pReadEnable !== 0;
    const { gpus } = this.#local.system;
    return (
      this.#reach.pathType(from, to) === PathType.NVL &&
      gpus[from]?.sm === READS_OVER_NV_LINK &&
      gpus[to]?.sm === READS_OVER_NV_LINK
    );
  }

  #gpu(rank: number): number {
    const gpu = this.#gpuOfRank.get(rank);
    if (gpu === undefined) throw new RangeError(`rank ${rank} is not on this node`);
    return gpu;
  }

  #rankOf(gpu: number): number {
    return this.#local.system.gpus[gpu]?.rank ?? -1;
  }
}
