import type { GdrMode, GdrReason } from '../../topology/paths/gdr.js';
import type { PathType } from '../../topology/types.js';

/** Transport of one rank's sends to or receives from another, with the reason. Ranks are those of the communicator. */
export type PlannedConnection = P2pConnection | ShmConnection | NetConnection | NoConnection;

/** GPU to GPU: the first choice. */
export interface P2pConnection {
  readonly via: 'P2P';
  readonly peer: number;
  /** The receiver reads from the sender's memory; otherwise the sender writes. */
  readonly read: boolean;
  /** The rank whose GPU the path leads through, if it does. */
  readonly relay: number | undefined;
  /** Path type between the GPUs. */
  readonly distance: PathType;
}

/** Through memory of the host: the second choice. */
export interface ShmConnection {
  readonly via: 'SHM';
  readonly peer: number;
  readonly reason: NoP2pReason;
}

/** Through the network: the fallback. */
export interface NetConnection {
  readonly via: 'NET';
  readonly peer: number;
  readonly reason: NetReason;
  /** Number of the device in its plugin. */
  readonly dev: number;
  /** The rank whose GPU the path to the device leads through, if it does. */
  readonly relay: number | undefined;
  /** The rank whose proxy serves the device: of a sender the relay (PXN), of a receiver the rank itself. */
  readonly proxyRank: number;
  readonly gdr: GdrMode;
  readonly gdrReason: GdrReason;
  /** Path type between the device and the GPU of the relay, or of the rank if there is no relay. */
  readonly distance: PathType;
}

/**
 * No transport: NCCL fails with a system error when it connects the two. They are on one node because other ranks join them, and
 * within a node NCCL uses the network only where that is faster.
 */
export interface NoConnection {
  readonly via: 'none';
  readonly peer: number;
  readonly reason: NoP2pReason;
}

/** Reason why two ranks of a host are not connected peer-to-peer. */
export type NoP2pReason =
  /** Their GPUs are farther apart than `NCCL_P2P_LEVEL` allows, or peer-to-peer is off. */
  | { readonly why: 'far'; readonly distance: PathType; readonly level: PathType }
  /** Copy engines do not copy by way of a third GPU. */
  | { readonly why: 'copy-engine' }
  /** The driver refuses it. */
  | { readonly why: 'driver' }
  /** They are on two nodes of one host: NCCL removed the other's GPU from the graph, so it has no path to it. */
  | { readonly why: 'other-node' };

/** Reason why two ranks are connected over the network. */
export type NetReason =
  | { readonly why: 'other-host' }
  /** Both GPUs reach a NIC faster than each other. */
  | { readonly why: 'faster' }
  /** They are on two nodes of one host and shared memory is off, or on two hosts of a rack. */
  | { readonly why: 'no-shm'; readonly noP2p: NoP2pReason };
