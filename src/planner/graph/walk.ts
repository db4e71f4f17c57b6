import type { Candidate } from './candidate.js';
import { Choice, ChoiceStack, type OpenChoice, Order } from './choices.js';
import { improvement } from './compare.js';
import { ExitDistance } from './gpu-order.js';
import { Pattern } from './graph.js';
import { Heads } from './heads.js';
import type { SearchHost } from './host.js';
import { Reservations } from './reservations.js';
import type { EntryRefusal, SearchListener } from './trace.js';

/**
 * One walk: lays channel after channel with the same settings, by trying in order and going back where it is stuck.
 *
 *     ENTRY ──► FIRST_GPU ──► NEXT_GPU ──► … ──► NEXT_GPU ──► EXIT ──► channel complete ──► ENTRY of the next channel …
 *     by which     where         which             …            by which NIC it leaves,
 *     NIC it       it                                           or CLOSE: back to the first GPU
 *     comes in     starts
 *
 * Each of these is a choice with alternatives. Taking one reserves the bandwidth of a path; when all its continuations have been
 * tried, the path is released and the next alternative taken. Open choices are on a stack of our own (choices.ts), because a rack
 * with many GPUs and channels exceeds the call stack.
 *
 * Patterns differ in where the EXIT comes: a ring leaves at its last GPU, a tree at its first; a balanced tree leaves
 * at its first two, with half of the bandwidth each. NVLS and CollNet direct have no NEXT_GPU but one HEAD, which
 * reserves paths from and to all GPUs at once.
 *
 * The walk ends after NCCL's number of steps, a step being one arrival at a GPU or at the end of a channel, so the order of
 * alternatives decides the result. When steps have run out, open alternatives are still taken and released once, because that
 * rounds the bandwidth of their links for later walks.
 */
export class Walk {
  readonly #host: SearchHost;
  /** Settings and channels of this walk. */
  readonly #attempt: Candidate;
  readonly #best: Candidate;
  readonly #trace: SearchListener | undefined;
  readonly #gpuCount: number;
  /** 1 for each GPU that a channel visits, by channel and GPU. */
  readonly #used: Uint8Array;
  readonly #open: ChoiceStack;
  readonly #reserve: Reservations;
  readonly #heads: Heads;
  #steps = 0;

  constructor(host: SearchHost, attempt: Candidate, best: Candidate, trace: SearchListener | undefined) {
    this.#host = host;
    this.#attempt = attempt;
    this.#best = best;
    this.#trace = trace;
    this.#gpuCount = attempt.gpuCount;
    this.#used = new Uint8Array(attempt.gpus.length);
    this.#open = new ChoiceStack(16 * (this.#gpuCount + 2));
    this.#reserve = new Reservations(host, attempt, trace);
    this.#heads = new Heads(host, attempt, this.#reserve);
  }

  /**
   * Walks with the settings of the attempt, and copies it to the best whenever it is better.
   *
   * @returns how many of the steps are left: 0 when they ran out, -1 when it found all the channels it may have
   */
  run(steps: number): number {
    this.#steps = steps;
    this.#attempt.nChannels = 0;
    this.#openChannel();
    for (let choice = this.#open.top; choice !== undefined; choice = this.#open.top) {
      if (!this.#takeNext(choice)) this.#closeChoice(choice);
    }
    return this.#steps;
  }

  /** Releases the choice's path and takes its next alternative; false when there is none. */
  #takeNext(choice: OpenChoice): boolean {
    switch (choice.kind) {
      case Choice.ENTRY:
        return this.#nextEntry(choice);
      case Choice.FIRST_GPU:
        return this.#nextFirstGpu(choice);
      case Choice.NEXT_GPU:
        return this.#nextGpu(choice);
      case Choice.EXIT:
        return this.#nextExit(choice);
      case Choice.CLOSE:
        return this.#close(choice);
      case Choice.HEAD:
        return this.#head(choice);
    }
  }

  #closeChoice(choice: OpenChoice): void {
    this.#open.close(choice);
    if (choice.opensChannel && this.#attempt.nChannels > 0) this.#attempt.nChannels--;
  }

  // ── A channel begins ──────────────────────────────────────────────────────────────────────────────────────────────

  #openChannel(): void {
    const { local, nics } = this.#host;
    if (!local.inter) {
      this.#openChannelWithin();
      return;
    }
    const choice = this.#open.open(Choice.ENTRY, 0, -1, -1, Order.BEST);
    choice.opensChannel = true;
    choice.found = false;
    choice.alternatives = nics.orderFor(-1, this.#attempt.typeInter);
    choice.next = 0;
    choice.end = choice.alternatives.length;
  }

  /** A channel that stays in the host starts at any GPU; NVLS channels have one GPU after the other as head. */
  #openChannelWithin(): void {
    const { pattern, nChannels, sameChannels } = this.#attempt;
    const choice = this.#open.open(Choice.FIRST_GPU, 0, -1, -1, Order.BEST);
    choice.opensChannel = true;
    choice.entry = -1;
    choice.ownSteps = false;
    const list = this.#open.list(choice, this.#gpuCount + 1);
    if (pattern === Pattern.NVLS) {
      list[choice.end++] = nChannels;
      return;
    }
    // First the GPUs in the order of their numbers, or of the channel before; then all others.
    choice.order = nChannels === 0 ? Order.BY_NUMBER : Order.REPEAT;
    list[choice.end++] = nChannels === 0 ? 0 : this.#attempt.gpuAt(nChannels - 1, 0);
    if (sameChannels && nChannels > 0) return;
    for (let gpu = 0; gpu < this.#gpuCount; gpu++) list[choice.end++] = gpu;
  }

  #nextEntry(choice: OpenChoice): boolean {
    const { nics, local, rules } = this.#host;
    const attempt = this.#attempt;
    // NCCL counts the bandwidth of ports in whole GB/s.
    const gbps = Math.trunc(attempt.bwInter);
    const headsOnly = attempt.pattern === Pattern.NVLS || attempt.pattern === Pattern.COLLNET_DIRECT;
    if (choice.taken >= 0) {
      const isRepeat = attempt.nChannels > 0 && attempt.sameChannels;
      const isLost = !headsOnly && !isRepeat && nics.keepsBorrowed(choice.taken);
      if (!isLost) nics.borrow(choice.taken, -gbps);
      choice.taken = -1;
      if (headsOnly && choice.found && rules.nvlsHeadNics !== 'all for one head') return false;
    }
    if (headsOnly && choice.next > 0 && rules.nvlsHeadNics === 'one') return false;
    const nicCount = choice.end;
    while (choice.next < nicCount) {
      const nic = choice.alternatives[((rules.nicsInTurn ? attempt.nChannels : 0) + choice.next++) % nicCount] ?? 0;
      const refusal = this.#refusesEntry(nic, gbps);
      if (refusal !== undefined) {
        this.#trace?.({ kind: 'refused-entry', nic: this.#nameOfNic(nic), reason: refusal });
        continue;
      }
      attempt.nics[attempt.nChannels * 2] = nics.namesake[nic] ?? nic;
      attempt.latencyInter = local.system.nets[nic]?.latencyUs ?? 0;
      nics.borrow(nic, gbps);
      choice.taken = nic;
      if (headsOnly) choice.found = this.#startHead(nic, choice.alternatives, nicCount);
      else this.#startBeside(nic);
      return true;
    }
    return false;
  }

  #refusesEntry(nic: number, gbps: number): EntryRefusal | undefined {
    const { nics, local } = this.#host;
    const { collNet, pattern, crossNic, nChannels } = this.#attempt;
    if (collNet && local.system.nets[nic]?.coll === false) return 'collnet';
    if (!nics.hasLeft(nic, gbps)) return 'bandwidth';
    const isSecondOfPair = nChannels % 2 === 1 && nics.inPairs(pattern, crossNic);
    return isSecondOfPair && nics.namesake[nic] !== this.#attempt.nics[nChannels * 2 - 1] ? 'pair' : undefined;
  }

  /** A ring or tree starts at a GPU beside its NIC. */
  #startBeside(nic: number): void {
    const { local, rules } = this.#host;
    const { nChannels, sameChannels } = this.#attempt;
    const choice = this.#addFirstGpu(nic);
    if (nChannels > 0 && sameChannels) {
      choice.order = Order.REPEAT;
      this.#open.list(choice, 1)[choice.end++] = this.#attempt.gpuAt(nChannels - 1, 0);
      return;
    }
    const beside = this.#gpusBeside(nic);
    const list = this.#open.list(choice, beside.length + 1);
    if (nChannels > 0 && !rules.replayWhereAlike) {
      choice.order = Order.REPEAT;
      list[choice.end++] = this.#attempt.gpuAt(nChannels - 1, 0);
    }
    if (nChannels === 0 && (local.system.nvSwitches.length === 0 || rules.byNumberWithSwitches)) {
      // The GPUs in the order of their numbers give a first solution to improve on; its few steps are not counted.
      choice.order = Order.BY_NUMBER;
      choice.ownSteps = true;
      list[choice.end++] = 0;
    }
    for (const gpu of beside) list[choice.end++] = gpu;
  }

  /** GPUs at which a channel that comes in by a NIC may start. */
  #gpusBeside(nic: number): Int32Array {
    const { nics, rules } = this.#host;
    const beside = nics.gpusBeside(nic);
    if (rules.firstGpus !== 'rotating' && rules.firstGpus !== 'unused first') return beside;
    if (nics.bestGBps(nic) < Math.trunc(this.#attempt.bwInter)) return new Int32Array();
    if (rules.firstGpus === 'unused first') {
      const isFree = (gpu: number) => this.#host.gpuOrder.pciGbpsLeft(gpu) > 0;
      return Int32Array.from([...beside.filter(isFree), ...beside.filter((gpu) => !isFree(gpu))]);
    }
    const start = beside.findIndex((gpu) => gpu >= this.#attempt.nChannels % this.#gpuCount);
    return start <= 0 ? beside : Int32Array.from([...beside.subarray(start), ...beside.subarray(0, start)]);
  }

  /** Tries the GPU of the NIC as a head of NVLS or CollNet direct; returns true if it became one. */
  #startHead(nic: number, nicOrder: Int32Array, nicCount: number): boolean {
    const { nics, rules } = this.#host;
    const { nChannels } = this.#attempt;
    const byChannel = rules.nvlsHeadNics === 'all for one head';
    const gpu = nics.localGpu[byChannel ? (nicOrder[nChannels] ?? -1) : nic] ?? -1;
    if (gpu === -1 || nChannels >= nicCount) return false;
    for (let channel = 0; channel < nChannels; channel++) {
      if (rules.nvlsHeadNics === 'until found' && this.#attempt.gpuAt(channel, 0) === gpu) return false;
    }
    const choice = this.#addFirstGpu(byChannel ? -1 : nic);
    this.#open.list(choice, 1)[choice.end++] = gpu;
    return true;
  }

  #addFirstGpu(nic: number): OpenChoice {
    const choice = this.#open.open(Choice.FIRST_GPU, 0, -1, this.#exitStep(), Order.BEST);
    choice.entry = nic;
    choice.ownSteps = false;
    return choice;
  }

  /** Position of the GPU at which the channel leaves to the network. */
  #exitStep(): number {
    switch (this.#attempt.pattern) {
      case Pattern.RING:
        return this.#gpuCount - 1;
      case Pattern.SPLIT_TREE:
        return 1;
      default:
        return 0;
    }
  }

  #nextFirstGpu(choice: OpenChoice): boolean {
    const usedStart = this.#attempt.nChannels * this.#gpuCount;
    const entry = choice.entry === -1 ? -1 : this.#gpuCount + choice.entry;
    if (choice.taken >= 0) {
      this.#used[usedStart + choice.taken] = 0;
      if (entry >= 0) this.#reserve.release(entry, choice.taken, this.#attempt.bwInter, 1);
      if (choice.ownSteps) {
        if (this.#steps !== PERFECT) this.#steps = choice.stepsBefore;
        choice.ownSteps = false;
      }
      choice.taken = -1;
      choice.order = Order.BEST;
    }
    while (choice.next < choice.end) {
      const gpu = choice.alternatives[choice.next++] ?? 0;
      if (entry < 0 || this.#reserve.outside(entry, gpu, this.#attempt.bwInter)) {
        this.#used[usedStart + gpu] = 1;
        choice.taken = gpu;
        if (choice.ownSteps) {
          choice.stepsBefore = this.#steps;
          this.#steps = STEPS_BY_NUMBER;
        }
        this.#visit(gpu, 0, choice.exitStep, choice.order);
        return true;
      }
      choice.order = Order.BEST;
      choice.ownSteps = false;
    }
    return false;
  }

  // ── A channel goes on ─────────────────────────────────────────────────────────────────────────────────────────────

  /** The channel has come to a GPU, or after the last to its end. */
  #visit(gpu: number, step: number, exitStep: number, order: Order): void {
    if (this.#steps <= 0) return;
    this.#steps--;
    if (step === this.#gpuCount) {
      this.#complete();
      return;
    }
    const attempt = this.#attempt;
    attempt.gpus[attempt.nChannels * this.#gpuCount + step] = gpu;
    if (step === exitStep) {
      const choice = this.#open.open(Choice.EXIT, step, gpu, exitStep, order);
      choice.alternatives = this.#host.nics.orderFor(gpu, attempt.typeInter);
      choice.next = 0;
      choice.end = choice.alternatives.length;
    } else if (attempt.pattern === Pattern.NVLS || attempt.pattern === Pattern.COLLNET_DIRECT) {
      this.#open.open(Choice.HEAD, step, gpu, -1, order).next = 0;
    } else if (step < this.#gpuCount - 1) {
      this.#addNextGpu(gpu, step, exitStep, order);
    } else if (!this.#host.local.inter && attempt.pattern === Pattern.RING) {
      this.#open.open(Choice.CLOSE, step, gpu, -1, order).next = 0;
    } else {
      this.#visit(gpu, this.#gpuCount, -1, order);
    }
  }

  #addNextGpu(gpu: number, step: number, exitStep: number, order: Order): void {
    const attempt = this.#attempt;
    const choice = this.#open.open(Choice.NEXT_GPU, step, gpu, exitStep, order);
    const list = this.#open.list(choice, this.#gpuCount);
    if (order === Order.BY_NUMBER) {
      list[choice.end++] = step + 1;
    } else if (order === Order.REPEAT) {
      list[choice.end++] = attempt.gpuAt(attempt.nChannels - 1, step + 1);
    } else {
      let exitDistance: ExitDistance = ExitDistance.INSIDE;
      if (exitStep !== -1) exitDistance = exitStep === step + 1 ? ExitDistance.OUT_NEXT : ExitDistance.OUT_LATER;
      choice.end = this.#host.gpuOrder.write(
        gpu,
        attempt.pattern,
        exitDistance,
        attempt.nics[attempt.nChannels * 2] ?? 0,
        this.#used,
        attempt.nChannels * this.#gpuCount,
        list,
        choice.next,
      );
    }
    this.#open.trim(choice);
  }

  #nextGpu(choice: OpenChoice): boolean {
    const usedStart = this.#attempt.nChannels * this.#gpuCount;
    if (choice.taken >= 0) {
      this.#used[usedStart + choice.taken] = 0;
      this.#reserve.release(choice.gpu, choice.taken, this.#attempt.bwIntra, 1);
      choice.taken = -1;
    }
    while (choice.next < choice.end) {
      const gpu = choice.alternatives[choice.next++] ?? 0;
      if (this.#reserve.inside(choice.gpu, gpu, 1)) {
        this.#used[usedStart + gpu] = 1;
        choice.taken = gpu;
        this.#visit(gpu, choice.step + 1, choice.exitStep, choice.order);
        return true;
      }
    }
    return false;
  }

  #nextExit(choice: OpenChoice): boolean {
    const { nics } = this.#host;
    const attempt = this.#attempt;
    const channel = attempt.nChannels;
    const isBalanced = attempt.pattern === Pattern.BALANCED_TREE;
    const gbps = isBalanced ? Math.fround(attempt.bwInter / 2) : attempt.bwInter;
    if (choice.taken >= 0) {
      this.#reserve.release(choice.gpu, this.#gpuCount + choice.taken, gbps, 1);
      choice.taken = -1;
    }
    const entry = attempt.nics[channel * 2] ?? 0;
    const partnerEntry = channel % 2 === 1 ? (attempt.nics[channel * 2 - 2] ?? 0) : -1;
    const firstExit = isBalanced && choice.step !== 0 ? (attempt.nics[channel * 2 + 1] ?? 0) : -1;
    while (choice.next < choice.end) {
      const nic = choice.alternatives[choice.next++] ?? 0;
      const refusal = nics.refusesExit(nic, entry, attempt.pattern, attempt.crossNic, partnerEntry, firstExit);
      if (refusal !== undefined) {
        this.#trace?.({ kind: 'refused-exit', nic: this.#nameOfNic(nic), entry: this.#nameOfNic(entry), reason: refusal });
        continue;
      }
      if (this.#reserve.outside(choice.gpu, this.#gpuCount + nic, gbps)) {
        attempt.nics[channel * 2 + 1] = nics.namesake[nic] ?? nic;
        choice.taken = nic;
        const nextExit = isBalanced && choice.step === 0 ? 1 : -1;
        this.#visit(choice.gpu, choice.step, nextExit, choice.order);
        return true;
      }
    }
    return false;
  }

  /** The last GPU of a ring without network goes back to the first. */
  #close(choice: OpenChoice): boolean {
    const first = this.#attempt.gpuAt(this.#attempt.nChannels, 0);
    if (choice.taken >= 0) {
      this.#reserve.release(choice.gpu, first, this.#attempt.bwIntra, 1);
      return false;
    }
    if (!this.#reserve.inside(choice.gpu, first, 1)) return false;
    choice.taken = first;
    this.#visit(first, this.#gpuCount, -1, choice.order);
    return true;
  }

  /** A channel of NVLS or CollNet direct is its head, with paths from and to all GPUs. */
  #head(choice: OpenChoice): boolean {
    if (choice.taken >= 0) {
      this.#heads.release(choice.gpu);
      return false;
    }
    if (!this.#heads.take(choice.gpu)) return false;
    choice.taken = choice.gpu;
    this.#visit(-1, this.#gpuCount, -1, Order.BEST);
    return true;
  }

  // ── A channel is complete ─────────────────────────────────────────────────────────────────────────────────────────

  #complete(): void {
    const attempt = this.#attempt;
    attempt.nChannels++;
    const better = improvement(attempt, this.#best, this.#host.rules);
    if (better !== undefined) {
      this.#best.copyFrom(attempt);
      if (attempt.nChannels === attempt.maxChannels) this.#steps = PERFECT;
      this.#trace?.({
        kind: 'solution',
        nChannels: attempt.nChannels,
        nHops: attempt.nHops,
        better,
        gbps: attempt.pattern === Pattern.NVLS ? attempt.bwInter : attempt.bwIntra,
      });
    }
    if (attempt.nChannels < attempt.maxChannels) this.#openChannel();
    else attempt.nChannels--;
  }

  #nameOfNic(nic: number): string {
    return this.#host.routes.nameOf(this.#gpuCount + nic);
  }
}

/** Steps left when nothing better can be found. */
export const PERFECT = -1;

/** Steps for the first channel in the order of the GPUs' numbers. */
const STEPS_BY_NUMBER = 1 << 10;
