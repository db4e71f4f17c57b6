import { CpuArch, CpuVendor } from '../topology/system.js';
import { PathType } from '../topology/types.js';
import type { Bounds, Candidate } from './candidate.js';
import { CrossNic, Pattern } from './graph.js';
import type { SearchHost } from './host.js';
import { placeOfType } from './routes.js';
import type { SearchListener } from './trace.js';

/**
 * The order of settings in the first pass. Settings change like the digits of a counter, the first one fastest: it is relaxed to
 * its limit, then reset while the next is relaxed by one, and so on.
 *
 *     sameChannels ► pattern ► typeIntra ► typeInter ► crossNic ► speed
 *     same, own      balanced   nearest …   nearest …   no, pairs   fastest …
 *                    or plain   farthest    farthest                slowest
 *
 * After a solution, only settings that might be better are tried: path types nearer than the solution's, and speeds of more than
 * about half of its speed.
 */
export class Relaxation {
  readonly #host: SearchHost;
  readonly #bounds: Bounds;
  readonly #attempt: Candidate;
  readonly #best: Candidate;
  readonly #trace: SearchListener | undefined;
  #speed: number;

  /** @param speed position of the speed that the attempt begins with */
  constructor(
    host: SearchHost,
    bounds: Bounds,
    attempt: Candidate,
    best: Candidate,
    speed: number,
    trace: SearchListener | undefined,
  ) {
    this.#host = host;
    this.#bounds = bounds;
    this.#attempt = attempt;
    this.#best = best;
    this.#speed = speed;
    this.#trace = trace;
  }

  /** Channels may differ from each other. */
  ownChannels(): boolean {
    const attempt = this.#attempt;
    const cpu = this.#host.local.system.cpus[0];
    const throughAmd =
      this.#host.rules.alikeThroughAmd &&
      cpu?.arch === CpuArch.X86 &&
      cpu.vendor === CpuVendor.AMD &&
      attempt.typeIntra === PathType.SYS;
    if (attempt.sameChannels && !throughAmd) {
      this.#tell('sameChannels', 1, 0);
      attempt.sameChannels = false;
      return true;
    }
    attempt.sameChannels = this.#bounds.sameChannels;
    return false;
  }

  /** All but {@link ownChannels}: a pair of tries with the same settings stays together. */
  rest(): boolean {
    return this.#plainTree() || this.#fartherGpus() || this.#fartherNics() || this.#pairedNics() || this.#slower();
  }

  #plainTree(): boolean {
    const attempt = this.#attempt;
    if (this.#host.lowestSm >= 90 && attempt.pattern === Pattern.BALANCED_TREE) {
      this.#tell('pattern', attempt.pattern, Pattern.TREE);
      attempt.pattern = Pattern.TREE;
      return true;
    }
    // Reset to the pattern of the best: where a plain tree was best, balanced ones are not tried again.
    attempt.pattern = this.#best.pattern;
    return false;
  }

  #fartherGpus(): boolean {
    const attempt = this.#attempt;
    const farthest = this.#host.local.inter ? attempt.typeInter : this.#bounds.maxTypeIntra;
    const helps = this.#best.nChannels === 0 || attempt.typeIntra < this.#best.typeIntra;
    const next = this.#farther(attempt.typeIntra);
    if (attempt.typeIntra < farthest && helps && next !== undefined) {
      this.#tell('typeIntra', attempt.typeIntra, next);
      attempt.typeIntra = next;
      return true;
    }
    attempt.typeIntra = this.#bounds.minTypeIntra;
    return false;
  }

  #fartherNics(): boolean {
    const attempt = this.#attempt;
    const helps =
      this.#best.nChannels === 0 ||
      attempt.typeInter < this.#best.typeInter ||
      attempt.typeInter < placeOfType(PathType.PXN, this.#host.rules);
    const next = this.#farther(attempt.typeInter);
    if (this.#host.local.inter && attempt.typeInter < this.#bounds.maxTypeInter && helps && next !== undefined) {
      this.#tell('typeInter', attempt.typeInter, next);
      attempt.typeInter = next;
      return true;
    }
    attempt.typeInter = this.#bounds.minTypeInter;
    return false;
  }

  /** The next type of path, or undefined where none may be tried. */
  #farther(type: PathType): PathType | undefined {
    const { pathOrder, c2cLinks, refusesUnconnected } = this.#host.rules;
    let next = type + 1;
    if (next === PathType.C2C && c2cLinks !== 'own type') next++;
    if (next === PathType.P2C && pathOrder === 'no p2c') next++;
    return next < PathType.DIS || !refusesUnconnected ? (next as PathType) : undefined;
  }

  #pairedNics(): boolean {
    const attempt = this.#attempt;
    const anyPattern = this.#host.rules.pairedPatterns !== 'rings';
    const canPair = anyPattern || this.#best.pattern === Pattern.RING || this.#best.pattern === Pattern.BALANCED_TREE;
    if (this.#bounds.mayPairNics && attempt.crossNic === CrossNic.NEVER && canPair) {
      const paired = anyPattern ? CrossNic.ALLOWED : CrossNic.PAIRED;
      this.#tell('crossNic', attempt.crossNic, paired);
      attempt.crossNic = paired;
      return true;
    }
    attempt.crossNic = this.#bounds.crossNicLater;
    return false;
  }

  #slower(): boolean {
    const slower = this.#bounds.speeds[this.#speed + 1];
    if (slower === undefined) return false;
    if (this.#best.nChannels > 0 && !(Math.fround(slower / this.#best.bwInter) > 0.49)) return false;
    this.#tell('speed', this.#attempt.bwInter, slower);
    this.#speed++;
    this.#attempt.bwIntra = slower;
    this.#attempt.bwInter = slower;
    return true;
  }

  #tell(what: 'sameChannels' | 'pattern' | 'typeIntra' | 'typeInter' | 'crossNic' | 'speed', from: number, to: number): void {
    this.#trace?.({ kind: 'relaxed', what, from, to });
  }
}
