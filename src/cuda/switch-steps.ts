import type { Flag, Step } from '../runtime/device/ptx/step-record.js';

/** Slots of a block: while one is filled, one is combined, and one emptied. */
const SLOTS = 3;
/** Data of a slot. */
export const SLOT_BYTES = 1 << 18;
/** Lines of a slot's two counters. */
const COUNTER_BYTES = 128;
/** Packs on the switch. */
const PACK_BYTES = 16;

/** GPUs on a switch, as one of them sees them. */
export interface SwitchView {
  /** This GPU's memory under its own address, and that of all GPUs. */
  readonly own: bigint;
  readonly all: bigint;
  readonly rank: number;
  readonly nRanks: number;
  /** Blocks that the memory has room for, each of which is a channel of its own. */
  readonly nBlocks: number;
  /** Data of a slot, a multiple of 16 for each rank. */
  readonly slotBytes: number;
}

/** A call on the switch. Its arrays may begin at any element. */
export interface SwitchCall {
  readonly name: string;
  readonly root: number;
  /** Elements of a part. */
  readonly count: number;
  readonly elementBytes: number;
  /** Addresses of this rank's arrays; missing where the rank has none. */
  readonly input: bigint | undefined;
  readonly output: bigint | undefined;
  /** Of a reduction: by how much the sum is divided. */
  readonly divisor: number;
}

/** Bytes of a GPU's memory for so many blocks. */
export function switchBytes(nBlocks: number, slotBytes = SLOT_BYTES): number {
  return nBlocks * SLOTS * (slotBytes + COUNTER_BYTES);
}

/** Elements of a round: `length` of each part, from `from` on, in a slot that begins `at` bytes after the memory. */
interface Round {
  readonly from: number;
  readonly length: number;
  readonly at: number;
}

/** Places of a round's arrays. */
interface Places {
  readonly view: SwitchView;
  readonly call: SwitchCall;
  readonly round: Round;
  readonly bytes: number;
  /** Place of part `part` of the round in the slot, in this GPU's memory or in that of all. */
  slot(of: 'own' | 'all', part?: number): bigint;
  input(part?: number): bigint;
  output(part?: number): bigint;
}

/**
 * Steps of a rank with the data of a slot. Only those of `combine` use the memory of other GPUs. Each list has as many steps on
 * every rank and in every round.
 */
interface Row {
  /** The parts of all ranks share a slot. */
  readonly hasParts: boolean;
  readonly fill: (places: Places) => Step[];
  readonly combine: (places: Places) => Step[];
  readonly drain?: (places: Places) => Step[];
}

const parts = ({ nRanks }: SwitchView): number[] => Array.from({ length: nRanks }, (_, rank) => rank);
const copy = (bytes: number, from: bigint, to: bigint): Step => ({ bytes, sources: [from], destinations: [to] });
const toAll = (bytes: number, from: bigint, to: bigint): Step => ({ ...copy(bytes, from, to), nWireDestinations: 1 });
const combined = (bytes: number, from: bigint, to: bigint, divisor: number): Step => ({
  ...copy(bytes, from, to),
  nWireSources: 1,
  divisor,
});
const nothing = ({ view }: Places): Step => ({ bytes: 0, sources: [view.own], destinations: [] });

/** The head's share of the elements of a round: whole packs. */
function shareOf({ view: { rank, nRanks }, bytes }: Places): { at: bigint; bytes: number } {
  const share = Math.ceil(bytes / nRanks / PACK_BYTES) * PACK_BYTES;
  const from = Math.min(rank * share, bytes);
  return { at: BigInt(from), bytes: Math.min(share, bytes - from) };
}

/**
 * Each rank is the head of a share of every slot, or of its part. The heads combine in place what all have filled in.
 * PTX leaves open in which order a switch adds; each element is added once, and the sum goes to all.
 */
const rows: Partial<Readonly<Record<string, Row>>> = {
  allReduce: {
    hasParts: false,
    fill: (at) => [copy(at.bytes, at.input(), at.slot('own'))],
    combine: (at) => {
      const share = shareOf(at);
      const place = at.slot('all') + share.at;
      return [{ ...combined(share.bytes, place, place, at.call.divisor), nWireDestinations: 1 }];
    },
    drain: (at) => [copy(at.bytes, at.slot('own'), at.output())],
  },
  reduceScatter: {
    hasParts: true,
    fill: (at) => parts(at.view).map((part) => copy(at.bytes, at.input(part), at.slot('own', part))),
    combine: (at) => [combined(at.bytes, at.slot('all', at.view.rank), at.output(), at.call.divisor)],
  },
  reduce: {
    hasParts: false,
    fill: (at) => [copy(at.bytes, at.input(), at.slot('own'))],
    combine: (at) => [isRoot(at) ? combined(at.bytes, at.slot('all'), at.output(), at.call.divisor) : nothing(at)],
  },
  broadcast: {
    hasParts: false,
    fill: (at) => [nothing(at)],
    combine: (at) => [isRoot(at) ? toAll(at.bytes, at.input(), at.slot('all')) : nothing(at)],
    drain: (at) => [isRoot(at) && at.call.input === at.call.output ? nothing(at) : copy(at.bytes, at.slot('own'), at.output())],
  },
  allGather: {
    hasParts: true,
    fill: (at) => [nothing(at)],
    combine: (at) => [toAll(at.bytes, at.input(), at.slot('all', at.view.rank))],
    drain: (at) => parts(at.view).map((part) => copy(at.bytes, at.slot('own', part), at.output(part))),
  },
};

const isRoot = ({ view, call }: Places): boolean => view.rank === call.root;

/** True for calls that a switch can carry out. */
export function isOnSwitch(name: string): boolean {
  return rows[name] !== undefined;
}

/** Rounds of a call, the same on all ranks. */
export interface SwitchRounds {
  readonly nBlocks: number;
  /** Of each block. */
  readonly nRounds: number;
  /** Elements of a part in a round. */
  readonly length: number;
}

/** @param unitBytes of each part, for which another block is worth its start */
export function roundsOf(view: SwitchView, call: SwitchCall, unitBytes: number): SwitchRounds {
  const { name, count, elementBytes } = call;
  const pack = PACK_BYTES / elementBytes;
  const most = Math.floor(view.slotBytes / (rows[name]?.hasParts === true ? view.nRanks : 1) / PACK_BYTES) * pack;
  const nBlocks = Math.min(Math.max(Math.ceil((count * elementBytes) / unitBytes), 1), view.nBlocks);
  const length = Math.min(Math.ceil(count / nBlocks / pack) * pack, most);
  return { nBlocks, length, nRounds: Math.ceil(count / length / nBlocks) };
}

/**
 * Steps of each block for some rounds of a call, whose turns overlap:
 *
 *     turn 0   fill 0
 *     turn 1   fill 1   combine 0
 *     turn 2   fill 2   combine 1   drain 0
 *
 * A slot has two counters in the memory of all, to which every rank adds 1 in every round: when it has filled the slot, so that
 * it needs nothing any more that was there before, and when it has combined. A rank combines when all have filled, and empties
 * or fills its own memory again when all have combined.
 *
 * @param first round of these
 * @param before rounds that each block has made in earlier calls
 */
export function switchSteps(
  view: SwitchView,
  call: SwitchCall,
  { nBlocks, length }: SwitchRounds,
  first: number,
  end: number,
  before: readonly number[],
): Step[][] {
  const row = rows[call.name];
  if (row === undefined) throw new RangeError(`${call.name} is not on the switch`);
  return Array.from({ length: nBlocks }, (_, block) => {
    const steps: Step[] = [];
    for (let turn = first; turn < end + 2; turn++) {
      for (const [phase, delay] of [
        ['fill', 0],
        ['combine', 1],
        ['drain', 2],
      ] as const) {
        const round = turn - delay;
        const make = row[phase];
        if (round < first || round >= end || make === undefined) continue;
        const number = (before[block] ?? 0) + round;
        const slot = block * SLOTS + (number % SLOTS);
        // Times that all ranks have used the slot, with this one.
        const times = Math.floor(number / SLOTS) + 1;
        const from = Math.min((round * nBlocks + block) * length, call.count);
        const at = view.nBlocks * SLOTS * COUNTER_BYTES + slot * view.slotBytes;
        const made = make(placesOf(view, call, { from, length: Math.min(length, call.count - from), at }, length));
        steps.push(...ordered(made, phase, view, slot, times));
      }
    }
    return steps;
  });
}

/** Adds what the steps of a phase wait for, and what they post. */
function ordered(
  steps: readonly Step[],
  phase: 'fill' | 'combine' | 'drain',
  { own, all, nRanks }: SwitchView,
  slot: number,
  times: number,
): Step[] {
  const counters = { filled: slot * COUNTER_BYTES, combined: slot * COUNTER_BYTES + COUNTER_BYTES / 2 };
  const wait = (counter: keyof typeof counters, rounds: number): Flag[] =>
    rounds === 0 ? [] : [{ address: own + BigInt(counters[counter]), value: BigInt(nRanks * rounds) }];
  const post = (counter: keyof typeof counters): Flag => ({ address: all + BigInt(counters[counter]), value: 1n });
  const waits = {
    fill: () => wait('combined', times - 1),
    combine: () => wait('filled', times),
    drain: () => wait('combined', times),
  }[phase]();
  const posts = { fill: [post('filled')], combine: [post('combined')], drain: [] }[phase];
  return steps.map((step, i) => ({
    ...step,
    ...(i === 0 ? { waits } : {}),
    ...(i === steps.length - 1 ? { posts, nMulticastPosts: posts.length } : {}),
  }));
}

/** @param length of a part of the slot */
function placesOf(view: SwitchView, call: SwitchCall, round: Round, length: number): Places {
  const { elementBytes, count } = call;
  const inArray = (address: bigint | undefined, part: number): bigint =>
    (address ?? 0n) + BigInt((part * count + round.from) * elementBytes);
  return {
    view,
    call,
    round,
    bytes: round.length * elementBytes,
    slot: (of, part = 0) => view[of] + BigInt(round.at + part * length * elementBytes),
    input: (part = 0) => inArray(call.input, part),
    output: (part = 0) => inArray(call.output, part),
  };
}
