import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { NcclAlgorithm, Protocol } from '../../tuning/names.js';
import type { Counterfactual } from '../counterfactual/counterfactual.js';

/** Subject of a question: each has an answer of its own. */
export type Ask =
  | 'bandwidth'
  | 'judge'
  | 'exceeds'
  | 'scaling'
  | 'time'
  | 'choice'
  | 'flips'
  | 'use'
  | 'limits'
  | 'channels'
  | 'rings'
  | 'nodes'
  | 'nic'
  | 'connection'
  | 'gdr'
  | 'pxn'
  | 'rails'
  | 'variable'
  | 'change'
  | 'upgrade'
  | 'help'
  | 'hang'
  | 'observe'
  | 'aware'
  | 'meaning';

/** A parsed question: its subject, and all that the words name. Ranks are those of the communicator. */
export interface Question {
  readonly asks: Ask;
  /** The call that is asked about; undefined if none is named. */
  readonly collective: ScheduledCollective | undefined;
  /** Sizes as nccl-tests counts them, bytes. */
  readonly sizes: readonly number[];
  /** Algorithms and protocols, in the order in which they are named. */
  readonly ways: readonly PartialWay[];
  /** True for `why no …`, `not`, `without`. */
  readonly isNegated: boolean;
  /** A bandwidth or a time that was measured. */
  readonly measured: Measured | undefined;
  /** A number that the question expects: channels, nodes. */
  readonly count: number | undefined;
  /** Ranks, NIC, ring or channel by number. */
  readonly ranks: readonly number[];
  readonly nic: number | undefined;
  readonly channel: number | undefined;
  /** Features and terms that the question names. */
  readonly terms: readonly Term[];
  /** Variables of NCCL, with the value that they are to have; null for unset, undefined if the question names no value. */
  readonly variables: readonly VariableInQuestion[];
  /** Changes of the cluster to compare with what it is. */
  readonly changes: readonly Counterfactual[];
  /** The cluster that the question is about, where it is not the one that is given. */
  readonly setting: readonly Counterfactual[];
  /** Versions of NCCL, in the order in which they are named. */
  readonly versions: readonly string[];
}

/** An algorithm, a protocol or both, as a question names them. */
export interface PartialWay {
  readonly algorithm?: NcclAlgorithm;
  readonly protocol?: Protocol;
}

/** A measurement that a question quotes. */
export interface Measured {
  readonly kind: 'busbw' | 'algbw' | 'bandwidth' | 'time';
  /** GB/s, or µs. */
  readonly value: number;
}

/** A variable of NCCL that a question names: with a value, unset (null), or without one (undefined). */
export interface VariableInQuestion {
  readonly name: string;
  readonly value: string | null | undefined;
}

/** Features of NCCL, parts of machines and figures that questions are about. */
export const terms = [
  'busbw',
  'algbw',
  'channel',
  'ring',
  'tree',
  'nvls',
  'nvlstree',
  'collnet',
  'pat',
  'll',
  'll128',
  'simple',
  'pxn',
  'gdr',
  'p2p',
  'shm',
  'rail',
  'nvlink',
  'nvswitch',
  'pcie',
  'nics',
  'sockets',
  'chunk',
  'path',
] as const;
/** A feature, part or figure that a question is about. */
export type Term = (typeof terms)[number];
