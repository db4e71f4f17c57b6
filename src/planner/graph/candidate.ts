import type { LocalSystem } from '../topology/local-systems.js';
import type { PathType } from '../topology/types.js';
import { type ChannelGraph, type CrossNic, type GraphId, nodeId, type Pattern } from './graph.js';
import type { GivenGraph } from './graph-xml.js';
import type { SearchRules } from './search-input.js';
import { placeOfType } from './routes.js';
import type { GraphRequest } from './request.js';

/** Initial and extreme settings of the search of one graph. */
export interface Bounds {
  readonly minTypeIntra: PathType;
  readonly maxTypeIntra: PathType;
  readonly minTypeInter: PathType;
  readonly maxTypeInter: PathType;
  readonly crossNic: CrossNic;
  /** Its value after both ways have been tried. */
  readonly crossNicLater: CrossNic;
  /** True if NICs may be paired where that helps: `NCCL_CROSS_NIC=2`. */
  readonly mayPairNics: boolean;
  readonly sameChannels: boolean;
  readonly speeds: Float32Array;
}

/**
 * A graph under construction: the settings of a walk, and the channels found so far. The search works on two: the one being
 * tried, and a copy of the best so far.
 */
export class Candidate {
  readonly id: GraphId;
  readonly collNet: boolean;
  readonly gpuCount: number;
  pattern: Pattern;
  crossNic: CrossNic;
  minChannels: number;
  maxChannels: number;
  nChannels = 0;
  bwIntra = 0;
  bwInter = 0;
  latencyInter = 0;
  typeIntra: PathType;
  typeInter: PathType;
  sameChannels: boolean;
  nHops = 0;
  /** The fallback without a solution: the GPUs in the order of their numbers, with the NICs of the first and the last. */
  isSimpleOrder = false;
  /** Older versions write id 0 for both NICs of that channel. */
  namesNoNic = false;
  /** GPUs by index, `gpuCount` a channel. */
  readonly gpus: Int32Array;
  /** NETs by index, two for each channel: entry and exit. */
  readonly nics: Int32Array;

  constructor(request: GraphRequest, gpuCount: number, bounds: Bounds) {
    this.id = request.id;
    this.collNet = request.collNet;
    this.pattern = request.pattern;
    this.minChannels = request.minChannels;
    this.maxChannels = request.maxChannels;
    this.gpuCount = gpuCount;
    this.typeIntra = bounds.minTypeIntra;
    this.typeInter = bounds.minTypeInter;
    this.crossNic = bounds.crossNic;
    this.sameChannels = bounds.sameChannels;
    this.gpus = new Int32Array(request.maxChannels * gpuCount);
    this.nics = new Int32Array(request.maxChannels * 2);
  }

  /** Copies the settings of a file, except the pattern, which is in the request. */
  adopt(given: GivenGraph): void {
    this.crossNic = given.crossNic;
    this.bwIntra = given.bwIntra;
    this.bwInter = given.bwInter;
    this.latencyInter = given.latencyInter;
    this.typeIntra = given.typeIntra;
    this.typeInter = given.typeInter;
    this.sameChannels = given.sameChannels;
  }

  /** Copies settings and channels of another candidate for the same request. */
  copyFrom(other: Candidate): void {
    this.pattern = other.pattern;
    this.crossNic = other.crossNic;
    this.minChannels = other.minChannels;
    this.maxChannels = other.maxChannels;
    this.nChannels = other.nChannels;
    this.bwIntra = other.bwIntra;
    this.bwInter = other.bwInter;
    this.latencyInter = other.latencyInter;
    this.typeIntra = other.typeIntra;
    this.typeInter = other.typeInter;
    this.sameChannels = other.sameChannels;
    this.nHops = other.nHops;
    this.gpus.set(other.gpus.subarray(0, other.nChannels * this.gpuCount));
    this.nics.set(other.nics.subarray(0, other.nChannels * 2));
  }

  /** The GPU that a channel visits at a step. */
  gpuAt(channel: number, step: number): number {
    return this.gpus[channel * this.gpuCount + step] ?? 0;
  }

  /** The finished graph, with ranks and NET ids in place of indexes. */
  finish({ system, inter: leavesHost }: LocalSystem, rules: SearchRules): ChannelGraph {
    const intra = this.gpus.slice(0, this.nChannels * this.gpuCount).map((gpu) => system.gpus[gpu]?.rank ?? -1);
    // A search within one host chooses no NICs. NCCL's ids then stay 0, which it reads as a NIC where it connects two of these
    // GPUs over the network.
    const namesNics = leavesHost || this.isSimpleOrder;
    const inter = BigInt64Array.from(this.nics.subarray(0, this.nChannels * 2), (nic) => {
      if (!namesNics || this.namesNoNic) return 0n;
      const net = system.nets[nic];
      return net === undefined ? -1n : nodeId(net);
    });
    return {
      id: this.id,
      pattern: this.pattern,
      crossNic: this.crossNic,
      collNet: this.collNet,
      minChannels: this.minChannels,
      maxChannels: this.maxChannels,
      nChannels: this.nChannels,
      bwIntra: this.bwIntra,
      bwInter: this.bwInter,
      latencyInter: this.latencyInter,
      typeIntra: placeOfType(this.typeIntra, rules),
      typeInter: placeOfType(this.typeInter, rules),
      sameChannels: this.sameChannels,
      nHops: this.nHops,
      gpuCount: this.gpuCount,
      intra,
      inter,
    };
  }
}
