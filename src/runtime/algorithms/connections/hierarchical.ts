import { gathers, isUneven } from '../call-traits.js';
import { InternalError } from '../../../errors.js';
import {
  ExchangeMoves,
  ShareMoves,
  type HierarchicalRole,
  type RankPlace,
  type ShareCut,
} from '../../../planner/schedule/hierarchical-moves.js';
import { hierarchicalWorkers, placesOf } from '../../../planner/schedule/hierarchical.js';
import { sharesOf, type RanksByHost } from '../../../planner/schedule/ranks-by-host.js';
import { partBytes } from '../../../planner/schedule/moves.js';
import { callKinds } from '../../device/kernels/kernels.js';
import type { PeerConnections, WantedEnd } from '../../transport/peers.js';
import type { Connection, FifoSize, ReceiveConnection } from '../../transport/transport.js';
import type { Ends, NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import { ALIGNMENT } from '../alignment.js';
import { mostNicPairs, railTurns, type Channels } from './channels.js';
import type { Combiner } from './combiner.js';
import { countsRoom, HEADER_BYTES, OWN_WORDS, type Outputs, type Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';
import { fairSlice, type SlotLimits } from '../slices.js';
import { connected, endsOf, WorkerTrack, type ConnectionSets } from './worker-track.js';
import { defined } from '../../../defined.js';

const slots: SlotLimits = { steps: 16, heldBytes: 16 * 2 ** 20, shortestBytes: 32 * 1024, buffers: 1 };
/** Most messages of a chunk; a connection holds at least two chunks, so that ranks that send first have room. */
const MOST_SLICES_PER_CHUNK = 4;
/** Slices that a share's chunk should have, so that hosts and wires work at the same time. */
const SLICES = 4;

/** The algorithm *hierarchical*: see planner/schedule/hierarchical.ts. */
export const hierarchical: NetworkAlgorithm = {
  fifo: hierarchicalFifo,
  lanes: (channels) => (takesAll(channels) ? mostNicPairs(channels) : 1),
  ends: (channels, rank) => {
    const turns = railTurns(channels);
    const all = takesAll(channels);
    const neighbours = channels.hosts.find((ranks) => ranks.includes(rank));
    // A schedule gives the share as channel.
    const onNics = (ends: readonly WantedEnd[]): WantedEnd[] =>
      ends.map((end) => {
        if (typeof end.channel !== 'number') return end;
        const turn = defined(turns[end.channel % turns.length]);
        return { ...end, channel: all && !neighbours?.includes(end.peer) ? 'all' : turn };
      });
    const { sendTo, receiveFrom } = hierarchicalEnds(teamsOf(channels), rank);
    return { sendTo: onNics(sendTo), receiveFrom: onNics(receiveFrom) };
  },
  open: ({ combiner, outputs, rank, channels, connections }) =>
    new Hierarchical(combiner, outputs, teamsOf(channels), rank, connections),
};

/** The ranks among which this algorithm exchanges data in shared memory: its hosts. */
function teamsOf({ hosts, teams = hosts }: Channels): RanksByHost {
  return teams;
}

/** True if each share takes all NICs, because shares dealt to them would not load them evenly. */
function takesAll(channels: Channels): boolean {
  return sharesOf(teamsOf(channels)) % railTurns(channels).length > 0;
}

/** Size of a connection: the more ranks, the shorter the slices. */
function hierarchicalFifo(nRanks: number, nLanes: number): FifoSize {
  return { steps: slots.steps, slotBytes: HEADER_BYTES + fairSlice(slots, nRanks * nLanes) + countsRoom(nRanks) };
}

function hierarchicalEnds(hosts: RanksByHost, rank: number): Ends {
  return endsOf(
    hierarchicalWorkers(hosts, rank).flatMap(({ ring, exchange }) => [ring, ...(exchange === undefined ? [] : [exchange])]),
  );
}

class Hierarchical implements NetworkPlayer {
  readonly #nShares: number;
  /** Work of this rank in a large call, and in a small one. */
  readonly #inRings: readonly { readonly share: number; readonly moves: ShareMoves; readonly track: ShareTrack }[];
  readonly #inExchange: readonly { readonly moves: ExchangeMoves; readonly track: WorkerTrack }[];
  readonly #tracks: Track[] = [];
  readonly #slotBytes: number;
  readonly #places: readonly RankPlace[];
  /** Of the running call. */
  readonly #cut: { -readonly [Name in keyof ShareCut]: ShareCut[Name] };

  constructor(combiner: Combiner, outputs: Outputs, hosts: RanksByHost, rank: number, connections: PeerConnections) {
    this.#nShares = sharesOf(hosts);
    const setsOf = connected(hierarchicalEnds(hosts, rank), connections);
    const [{ size } = hierarchicalSize] = connections.sends;
    this.#slotBytes = size.slotBytes - HEADER_BYTES - countsRoom(combiner.nRanks);
    this.#cut = { sliceBytes: 0, slicesPerChunk: Math.min(MOST_SLICES_PER_CHUNK, size.steps / 2), grainBytes: ALIGNMENT };
    this.#places = placesOf(hosts);
    const workers = hierarchicalWorkers(hosts, rank);
    const neighbours = defined(hosts.find((ranks) => ranks.includes(rank)));
    // The first sender comes first: the others wait for it.
    const order = ['up', 'owner', 'down'];
    workers.sort((a, b) => order.indexOf(a.role) - order.indexOf(b.role));
    this.#inRings = workers.map((worker) => {
      const moves = new ShareMoves(worker);
      return {
        share: worker.share,
        moves,
        track: new ShareTrack(combiner, outputs, moves, setsOf(worker.ring), worker.role, neighbours),
      };
    });
    this.#inExchange = workers.flatMap(({ exchange }) => {
      if (exchange === undefined) return [];
      const moves = new ExchangeMoves(exchange.moves);
      const isStored = exchange.moves.some(({ holds }) => holds);
      const room = isStored ? combiner.team.allocateBytes(this.#slotBytes) : 0;
      return [{ moves, track: new WorkerTrack(combiner, moves, setsOf(exchange), room) }];
    });
  }

  /** A call that fits in a slot is not divided: fewer messages in sequence, but every host adds all data. */
  start(call: NetworkCall): readonly Track[] {
    const { kind, bytes } = call;
    const tracks = this.#tracks;
    tracks.length = 0;
    switch (kind) {
      case callKinds.allReduce:
        return bytes <= this.#slotBytes ? this.#exchange(bytes) : this.#inShares(call);
      case callKinds.barrier:
        return this.#exchange(0);
      case callKinds.broadcast:
      case callKinds.reduce:
        return this.#inShares(call);
      case callKinds.allGather:
      case callKinds.allGatherV:
      case callKinds.reduceScatter:
      case callKinds.reduceScatterV:
        return this.#inBlocks(call);
      default:
        throw new InternalError('INTERNAL', `hierarchical has no call of kind ${kind}`);
    }
  }

  #exchange(bytes: number): readonly Track[] {
    for (const { moves, track } of this.#inExchange) {
      moves.start(bytes);
      this.#add(track);
    }
    return this.#tracks;
  }

  /** Calls whose data are divided into shares. */
  #inShares({ kind, bytes, root, isInPlace }: NetworkCall): readonly Track[] {
    const nShares = this.#nShares;
    // A share shorter than half a slot costs more hand-overs within a host than another owner gains.
    const count = Math.min(nShares, Math.max(1, Math.floor((2 * bytes) / this.#slotBytes)));
    const part = partBytes(bytes, count, ALIGNMENT);
    const cut = this.#cutFor(part);
    const place = this.#places[root];
    // Few shares begin with the root's, so that it needs no owner.
    const first = kind === callKinds.allReduce || place === undefined ? 0 : place.share;
    for (const { share, moves, track } of this.#inRings) {
      const index = (share - first + nShares) % nShares;
      if (index >= count) continue;
      const from = Math.min(bytes, index * part);
      const length = Math.min(part, bytes - from);
      if (kind === callKinds.allReduce || place === undefined) moves.startAllReduce(from, length, cut);
      else if (kind === callKinds.broadcast) moves.startBroadcast(from, length, cut, place, !isInPlace);
      else moves.startReduce(from, length, cut, place);
      track.useArrays(kind === callKinds.allReduce ? 'sums' : kind === callKinds.broadcast ? 'copies' : 'none');
      this.#add(track);
    }
    return this.#tracks;
  }

  /** Calls whose shares are blocks of ranks. */
  #inBlocks(call: NetworkCall): readonly Track[] {
    const isGather = gathers(call.kind);
    const blocks = call.blocks();
    const cut = this.#cutFor(blocks.longest);
    const copies = isGather && !call.isInPlace;
    for (const { moves, track } of this.#inRings) {
      if (isGather) moves.startAllGather(blocks, cut, copies);
      else moves.startReduceScatter(blocks, cut);
      track.useArrays(isGather && !isUneven(call.kind) ? 'copies' : 'none');
      this.#add(track);
    }
    return this.#tracks;
  }

  #cutFor(shareBytes: number): ShareCut {
    const wanted = partBytes(shareBytes, 2 * SLICES, ALIGNMENT);
    this.#cut.sliceBytes = Math.min(this.#slotBytes, Math.max(slots.shortestBytes, wanted));
    return this.#cut;
  }

  #add(track: WorkerTrack): void {
    track.start();
    this.#tracks.push(track);
  }
}

/*
 * Large all-reduces of arrays in shared memory are not copied within a host. The header of a message up has the addresses
 * of the sender's input and output, or 0; the owner adds inputs where they are and writes results to outputs where they are,
 * which the header of its message down shows. A rank waits for its results, so the owner has read its input by then.
 *
 * In all-gathers and broadcasts, which have no messages up from most ranks, a rank announces its output when it enters the call.
 * The owner writes there if the announcement is there in time, and otherwise into slots. Counts of V forms would lie in the
 * header's place, so these use slots.
 */
const INPUT = OWN_WORDS;
const OUTPUT = OWN_WORDS + 1;

const hierarchicalSize = { size: hierarchicalFifo(1, 1) };

/** Use of the arrays of other ranks of the host in a call: none, of inputs and outputs, or of outputs. */
type ArrayUse = 'none' | 'sums' | 'copies';

/** Executes the moves of a share, and may use the arrays of other ranks of the host. */
class ShareTrack extends WorkerTrack {
  readonly #role: HierarchicalRole;
  /** Ranks of this host. */
  readonly #neighbours: readonly number[];
  /** By rank: start of its output in shared memory in the running call; 0 if unknown. */
  readonly #outputsOf: Float64Array;
  readonly #sources: number[] = [];
  readonly #destinations: number[] = [];
  readonly #shareMoves: ShareMoves;
  readonly #announcements: Outputs;
  readonly #receives: readonly ReceiveConnection[];
  #arrays: ArrayUse = 'none';

  constructor(
    combiner: Combiner,
    outputs: Outputs,
    moves: ShareMoves,
    sets: ConnectionSets,
    role: HierarchicalRole,
    neighbours: readonly number[],
  ) {
    super(combiner, moves, sets);
    this.#shareMoves = moves;
    this.#announcements = outputs;
    this.#receives = sets.receives.flat();
    this.#outputsOf = new Float64Array(combiner.nRanks);
    this.#role = role;
    this.#neighbours = neighbours;
  }

  /** Begins a call in which ranks of a host use each other's arrays so. */
  useArrays(arrays: ArrayUse): void {
    this.#arrays = arrays;
    this.mayUseArrays = arrays !== 'sums';
    if (arrays === 'none') return;
    this.#outputsOf.fill(0);
    const output = arrays === 'copies' && this.#role === 'down' ? this.combiner.outputAddress(0) : 0;
    if (output === 0) return;
    for (const receive of this.#receives) this.#announcements.announce(receive, output);
  }

  override pass(inputs: readonly number[], outputs: readonly number[]): void {
    if (this.#arrays === 'sums') this.#passArrays(inputs, outputs);
    else if (this.#arrays === 'copies' && this.data === 0 && this.#role !== 'up') this.#passCopies(inputs, outputs);
    else super.pass(inputs, outputs);
  }

  #passCopies(inputs: readonly number[], outputs: readonly number[]): void {
    if (this.#role === 'down') {
      this.#passDown(inputs, outputs);
      return;
    }
    for (let i = 0; i < this.to.length; i++) {
      const send = this.to[i];
      if (send !== undefined && this.#isWithinHost(send)) this.#outputsOf[send.peer] ||= this.#announcements.announced(send);
    }
    this.#aim(outputs, this.#shareMoves.target);
    this.combiner.pass(this.moves, inputs, this.from.length, this.#destinations, this.to.length);
  }

  /** Sets the destinations of data: outputs of ranks of this host at `target`, where they are known, otherwise slots. */
  #aim(slots: readonly number[], target: number): void {
    const { to } = this;
    const destinations = this.#destinations;
    for (let i = 0; i < to.length; i++) {
      const slot = defined(slots[i]);
      const send = to[i];
      destinations[i] = slot;
      if (send === undefined || !this.#isWithinHost(send)) continue;
      const output = target < 0 ? 0 : defined(this.#outputsOf[send.peer]);
      if (output !== 0) destinations[i] = output + target;
      this.markWritten(slot, output !== 0);
    }
  }

  #passDown(inputs: readonly number[], outputs: readonly number[]): void {
    const [from] = this.from;
    const isWritten = from !== undefined && this.#isWithinHost(from) && this.isWritten(inputs[0]);
    if (!isWritten) this.combiner.pass(this.moves, inputs, 1, outputs, 0);
  }

  #passArrays(inputs: readonly number[], outputs: readonly number[]): void {
    const { moves, combiner } = this;
    if (this.#role === 'owner') this.#passAsOwner(inputs, outputs);
    else if (this.#role === 'down') this.#passDown(inputs, outputs);
    else {
      const [to] = this.to;
      const input = to !== undefined && this.#isWithinHost(to) ? combiner.inputAddress(moves.own) : 0;
      const [slot = 0] = outputs;
      this.setWordOf(slot, INPUT, input);
      this.setWordOf(slot, OUTPUT, combiner.outputAddress(moves.own));
      if (input === 0) combiner.pass(moves, inputs, 0, outputs, 1);
    }
  }

  #passAsOwner(inputs: readonly number[], outputs: readonly number[]): void {
    const { from, to, moves, combiner } = this;
    const { own, keep } = moves;
    const sources = this.#sources;
    for (let i = 0; i < from.length; i++) {
      const slot = defined(inputs[i]);
      const receive = from[i];
      sources[i] = slot;
      if (receive === undefined || !this.#isWithinHost(receive)) continue;
      const input = this.wordOf(slot, INPUT);
      const output = this.wordOf(slot, OUTPUT);
      if (input !== 0) sources[i] = input;
      this.#outputsOf[receive.peer] = output === 0 ? 0 : output - own;
    }
    // An own input that must be copied first would go to the first output, which may be another rank's input.
    const canWrite = own < 0 || combiner.inputAddress(own) !== 0;
    this.#aim(outputs, canWrite ? keep : -1);
    combiner.pass(moves, sources, from.length, this.#destinations, to.length);
  }

  /** True for connections in shared memory to ranks of this host, which use these words of a header. */
  #isWithinHost({ transport, peer }: Connection): boolean {
    return transport === 'shm' && this.#neighbours.includes(peer);
  }
}
