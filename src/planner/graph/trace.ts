import type { PathType } from '../topology/types.js';
import type { ExitRefusal } from './nics.js';
import type { ChannelGraph, CrossNic, GraphId, Pattern } from './graph.js';

/** The settings of all channels of one try. */
export interface Settings {
  readonly pattern: Pattern;
  readonly crossNic: CrossNic;
  readonly sameChannels: boolean;
  /** GB/s. */
  readonly bwIntra: number;
  /** GB/s. */
  readonly bwInter: number;
  /** Farthest path between GPUs. */
  readonly typeIntra: PathType;
  /** Farthest path between GPU and NIC. */
  readonly typeInter: PathType;
  readonly minChannels: number;
  readonly maxChannels: number;
}

/** Reason why a path could not be part of a channel. */
export type PathRefusal =
  | { readonly why: 'unconnected' }
  /** It is farther than the settings allow; `back` if that is the path back, which trees use too. */
  | { readonly why: 'type'; readonly type: PathType; readonly allowed: PathType; readonly back: boolean }
  /** A link of it has too little left, GB/s. */
  | {
      readonly why: 'bandwidth';
      readonly linkFrom: string;
      readonly linkTo: string;
      readonly needed: number;
      readonly left: number;
    };

/** Reason why a channel could not enter by a NIC. */
export type EntryRefusal =
  /** It cannot reduce. */
  | 'collnet'
  /** Its port has too little bandwidth left. */
  | 'bandwidth'
  /** The second of a pair enters where the first leaves. */
  | 'pair';

/** Property that made a solution better than the best before it. */
export type Improvement = 'first' | 'bandwidth' | 'hops' | 'heads';

/**
 * Decisions of a search in their order. Nodes have their names, as `GPU/0-1b000`.
 *
 *     search ─► (attempt ─► taken, released, refused-path, refused-entry, refused-exit, solution … ─► ended ─► relaxed)*
 *            ─► stopped ─► duplicated? ─► (attempt … ─► ended)* ─► simple-order? ─► result
 */
export type SearchEvent =
  | {
      readonly kind: 'search';
      readonly graph: GraphId;
      readonly pattern: Pattern;
      readonly inter: boolean;
      /** Speeds to choose from, GB/s. */
      readonly speeds: readonly number[];
      /** Speeds above are not tried: the best path carries no more; GB/s. */
      readonly maxGbps: number;
      /** Channels together cannot have more; GB/s. */
      readonly totalGbps: number;
    }
  /** The graph is in a file, so nothing is searched. */
  | { readonly kind: 'from-file' }
  /** NVLS needs an NVSwitch and GPUs of sm 90. */
  | { readonly kind: 'no-hardware' }
  /** A walk with these settings; in pass 2 it is for more speed with as many channels. */
  | ({ readonly kind: 'attempt'; readonly pass: 1 | 2; readonly steps: number } & Settings)
  /** A path is in the channel, or is not any more: another alternative comes. `left` is valid until the listener returns. */
  | {
      readonly kind: 'taken' | 'released';
      readonly from: string;
      readonly to: string;
      readonly gbps: number;
      readonly left: () => readonly LinkLeft[];
    }
  | { readonly kind: 'refused-path'; readonly from: string; readonly to: string; readonly reason: PathRefusal }
  | { readonly kind: 'refused-entry'; readonly nic: string; readonly reason: EntryRefusal }
  | { readonly kind: 'refused-exit'; readonly nic: string; readonly entry: string; readonly reason: ExitRefusal }
  | {
      readonly kind: 'solution';
      readonly nChannels: number;
      /** GB/s of a channel: between GPUs, or for NVLS at its head. */
      readonly gbps: number;
      readonly nHops: number;
      readonly better: Improvement;
    }
  /** `perfect`: as many channels as allowed. `all tried`: nothing is left to try with these settings. */
  | {
      readonly kind: 'ended';
      readonly outcome: 'perfect' | 'all tried' | 'out of steps';
      readonly stepsLeft: number;
      readonly found: number;
    }
  | {
      readonly kind: 'relaxed';
      readonly what: 'sameChannels' | 'pattern' | 'typeIntra' | 'typeInter' | 'crossNic' | 'speed';
      readonly from: number;
      readonly to: number;
    }
  /** The first pass is over. `enough`: all bandwidth of a GPU is in use. */
  | { readonly kind: 'stopped'; readonly why: 'perfect' | 'enough' | 'out of steps' | 'nothing left to relax' }
  /** Channels were copied, each at less speed. */
  | {
      readonly kind: 'duplicated';
      readonly from: number;
      readonly to: number;
      readonly bwIntra: number;
      readonly bwInter: number;
    }
  /** No solution: one channel in the order of the GPUs, whatever it costs. */
  | { readonly kind: 'simple-order' }
  | { readonly kind: 'result'; readonly graph: ChannelGraph };

/** Bandwidth that a link has left, GB/s. */
export interface LinkLeft {
  readonly from: string;
  readonly to: string;
  readonly gbps: number;
}

/** Called with each decision. A search without a listener makes no events. */
export interface SearchListener {
  (event: SearchEvent): void;
  /** True for a listener that gets `taken` and `released`, too: most events are these. */
  readonly wantsPaths?: boolean;
}
