/** Connection of two ranks. */
export interface Transport {
  readonly family: 'P2P' | 'SHM' | 'NET' | 'COLLNET';
  /** NCCL's name, without rank and device: `P2P/CUMEM`, `SHM/direct`, `NET/IB`. */
  readonly name: string;
  /** The network's name, as `IB`, `Socket`, `AWS Libfabric`. */
  readonly network?: string;
  /** Number of the network device. */
  readonly nic?: number;
  /** The rank whose GPU and NIC relay the data (PXN), or the GPU between two that are not linked. */
  readonly via?: number;
  /** True if the NIC reads and writes the memory of the GPU. */
  readonly gdr?: boolean;
}

/** Result of a search, from `Pattern 4, crossNic 0, nChannels 8, bw …`. */
export interface SearchResult {
  readonly pattern: number;
  readonly crossNic: number;
  readonly nChannels: number;
  readonly bwIntra: number;
  readonly bwInter: number;
  readonly typeIntra: string;
  readonly typeInter: string;
  readonly sameChannels: boolean;
}

export interface TreeLink {
  readonly channel: number;
  readonly down: readonly number[];
  readonly up: number;
}

/** A device of `NET/IB : Using [0]mlx5_0:1/IB`. */
export interface NetDevice {
  readonly number: number;
  readonly name: string;
  /** `IB` or `RoCE`, the link of an RDMA device. */
  readonly link: string | undefined;
}

export interface InitFacts {
  /** Address of the communicator in its process. */
  readonly address: string;
  readonly rank: number;
  readonly nRanks: number;
  readonly cudaDev: number;
  readonly nvmlDev?: number;
  readonly busId?: string;
  readonly commId?: string;
  /** Of a communicator that was split off another: the address of the parent, and the color. */
  readonly parent?: string;
  readonly color?: number;
}

/** A collective or message as a rank called it, written with NCCL_DEBUG_SUBSYS=COLL. */
export interface CallEvent {
  readonly kind: 'call';
  readonly operation: string;
  /** Number of the launch in its communicator. */
  readonly opCount: number;
  readonly count: number;
  readonly datatype: number;
  readonly reduction: number;
  readonly root: number;
  readonly address: string;
  readonly nRanks: number;
}

/** Meaning of a line of NCCL. */
export type LogEvent =
  | { readonly kind: 'version'; readonly version: string }
  | ({ readonly kind: 'init-start' } & InitFacts)
  | ({ readonly kind: 'init-complete' } & InitFacts)
  /** A communicator was destroyed, or aborted. */
  | ({ readonly kind: 'ended'; readonly aborted: boolean } & InitFacts)
  | { readonly kind: 'nodes'; readonly rank: number; readonly nRanks: number; readonly nNodes: number }
  | { readonly kind: 'environment'; readonly name: string; readonly value: string }
  | {
      readonly kind: 'ring-order';
      readonly channel: number;
      readonly nChannels: number;
      readonly ranks: readonly number[];
      readonly cut: boolean;
    }
  | { readonly kind: 'ring'; readonly channel: number; readonly prev: number; readonly rank: number; readonly next: number }
  | { readonly kind: 'trees'; readonly rank: number; readonly links: readonly TreeLink[] }
  | {
      readonly kind: 'connection';
      readonly channel: number;
      readonly from: number;
      readonly to: number;
      /** The end that wrote it: both ends of a network connection do, else the sender. */
      readonly end: 'send' | 'receive';
      readonly transport: Transport;
    }
  | { readonly kind: 'search'; readonly result: SearchResult }
  /** NVLS since 2.18. */
  | { readonly kind: 'channel-counts'; readonly coll: number; readonly nvls: number | undefined; readonly p2p: number }
  | {
      readonly kind: 'connected';
      readonly what: 'rings' | 'trees' | 'nvls' | 'collnet';
      readonly gdr?: boolean;
      readonly pxn?: boolean;
    }
  | { readonly kind: 'devices'; readonly network: string; readonly devices: readonly NetDevice[] }
  | { readonly kind: 'bootstrap'; readonly name: string; readonly address: string }
  | { readonly kind: 'network'; readonly name: string }
  | { readonly kind: 'plugin-sought'; readonly version: number }
  | { readonly kind: 'plugin-loaded'; readonly name: string; readonly version: number }
  | { readonly kind: 'plugin-release'; readonly text: string }
  | { readonly kind: 'plugin-path'; readonly path: string }
  | { readonly kind: 'merged-nic' }
  | { readonly kind: 'nvls-head'; readonly head: number; readonly ranks: readonly number[] }
  | { readonly kind: 'nvls-support'; readonly available: boolean }
  | { readonly kind: 'nvlink' }
  | { readonly kind: 'init-timing'; readonly rank: number; readonly nRanks: number; readonly seconds: number }
  | {
      readonly kind: 'choice';
      readonly collective: string;
      readonly bytes: number;
      readonly algorithm: string;
      readonly protocol: string;
      readonly channels: number;
    }
  /** Since 2.31: a call for which the tuning model is asked, then its answer. */
  | { readonly kind: 'tuning-input'; readonly collective: string; readonly bytes: number }
  | { readonly kind: 'tuned'; readonly algorithm: string; readonly protocol: string; readonly channels: number }
  | CallEvent
  /** A call that returned an error to its caller. */
  | { readonly kind: 'returned'; readonly where: string; readonly result: number }
  | { readonly kind: 'no-p2p'; readonly text: string }
  /** A line that begins like a known one and continues otherwise. */
  | { readonly kind: 'cut' }
  | { readonly kind: 'other' };
