import { InputError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { JsonReader } from '../json-reader.js';
import type { FarPlace, OneSidedProgram, OneSidedRank, OneSidedStep, SignalChannel } from './one-sided.js';
import type { Local, ScheduledCollective } from './schedule.js';

/** The collectives of MSCCL++ by name whose result is known. */
const COLLECTIVES: Readonly<Record<string, ScheduledCollective>> = {
  allreduce: 'AllReduce',
  allgather: 'AllGather',
  reducescatter: 'ReduceScatter',
  alltoall: 'AllToAll',
  broadcast: 'Broadcast',
  sendrecv: 'SendRecv',
};
/** Names of plans that define no result: MSCCL++'s `Collective` and `TestCollective`. */
const withoutResult = ['custom', 'test'];
const BUFFERS: Readonly<Record<string, Local['buffer']>> = { i: 'input', o: 'output', s: 'scratch' };
/** Bytes of scratch that MSCCL++ allocates for plans that use it again and again. */
const REUSED_SCRATCH_BYTES = 2 ** 26;
const MOST_RANKS = 4096;
const MOST_CHUNKS = 1_000_000;
const MOST_BYTES = 2 ** 40;

/** Rules of an operation that moves data. The first `plain` of its buffers have no flags. */
interface MoveRule {
  /** Flags of the buffers that it reads: of those after the first, and of the first. */
  readonly reads: 'plain' | 'flags' | 'flags behind the first';
  readonly writes: 'plain' | 'flags' | 'flags behind the first';
  /** Pairs of a source and a target, rather than one sum for all targets. */
  readonly isPairwise?: boolean;
  readonly signals?: boolean;
}

/** Operations that move data, by their names. */
const MOVES: Readonly<Record<string, MoveRule>> = {
  copy: { reads: 'plain', writes: 'plain' },
  put: { reads: 'plain', writes: 'plain', isPairwise: true },
  pws: { reads: 'plain', writes: 'plain', isPairwise: true, signals: true },
  pwsf: { reads: 'plain', writes: 'plain', isPairwise: true, signals: true },
  get: { reads: 'plain', writes: 'plain', isPairwise: true },
  re: { reads: 'plain', writes: 'plain' },
  res: { reads: 'plain', writes: 'plain' },
  rre: { reads: 'plain', writes: 'plain' },
  rres: { reads: 'plain', writes: 'plain' },
  ppkt: { reads: 'plain', writes: 'flags', isPairwise: true },
  cpkt: { reads: 'plain', writes: 'flags' },
  upkt: { reads: 'flags', writes: 'plain' },
  rppkt: { reads: 'flags', writes: 'flags' },
  repkt: { reads: 'flags behind the first', writes: 'plain' },
  respkt: { reads: 'flags behind the first', writes: 'flags behind the first' },
  recpkt: { reads: 'flags behind the first', writes: 'flags behind the first' },
  recspkt: { reads: 'flags behind the first', writes: 'flags behind the first' },
  glre: { reads: 'plain', writes: 'plain' },
  glres: { reads: 'plain', writes: 'plain' },
  gstore: { reads: 'plain', writes: 'plain' },
  gstorepkt: { reads: 'flags', writes: 'flags' },
};
const OTHERS = ['signal', 'rlxsignal', 'wait', 'rlxwait', 'flush', 'nop', 'barrier', 'sem_acquire', 'sem_release', 'pipeline'];

/**
 * Reads an execution plan of MSCCL++ (JSON with `gpus`, `threadblocks`, `ops`), as its language writes it.
 *
 * @throws InputError with the path: no JSON, a field that is missing or impossible
 */
export function readMscclppJson(text: string): OneSidedProgram {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new InputError('SYNTAX', `no JSON: ${(cause as Error).message}`, { cause });
  }
  const file = new JsonReader(json, 'plan');
  const name = file.field('collective').text();
  const collective = Object.hasOwn(COLLECTIVES, name) ? COLLECTIVES[name] : undefined;
  if (withoutResult.includes(name))
    throw new InputError(
      'CONTENT',
      `plan.collective "${name}" defines no result, so nothing can be verified; name the collective that it carries out: ${Object.keys(COLLECTIVES).join(', ')}`,
    );
  if (collective === undefined)
    throw new InputError(
      'CONTENT',
      `plan.collective "${name}" is none whose result is known${didYouMean(name, Object.keys(COLLECTIVES)) || `; these are: ${Object.keys(COLLECTIVES).join(', ')}`}`,
    );
  const gpus = file.field('gpus').items();
  const nRanks = gpus.length;
  if (nRanks === 0 || nRanks > MOST_RANKS)
    throw new InputError('CONTENT', `plan.gpus has ${nRanks} entries; it has to have 1 to ${MOST_RANKS}`);
  gpus.forEach((gpu, rank) => gpu.field('id').integer(rank, rank));
  const [inputChunks, outputChunks, scratchChunks] = ['input_chunks', 'output_chunks', 'scratch_chunks'].map((field) =>
    Math.max(...gpus.map((gpu) => gpu.field(field).integer(0, MOST_CHUNKS))),
  ) as [number, number, number];
  const parts = collective === 'AllGather' ? inputChunks * nRanks : collective === 'ReduceScatter' ? outputChunks * nRanks : 0;
  const chunks = Math.max(inputChunks, outputChunks, parts);
  if (chunks === 0) throw new InputError('CONTENT', 'plan.gpus[0].input_chunks and output_chunks are 0: there are no data');
  const scratchBytes = REUSED_SCRATCH_BYTES / (file.optional('use_double_scratch_buffer')?.flag() === true ? 2 : 1);
  return {
    isOneSided: true,
    name: file.optional('name')?.text() ?? 'an algorithm',
    collective,
    nRanks,
    chunks,
    protocol: file.field('protocol').oneOf(['LL', 'LL128', 'Simple']),
    isInPlace: file.field('inplace').flag(),
    ...sizesOf(file),
    ...(file.optional('reuse_resources')?.flag() === true && scratchChunks > 0
      ? { scratchChunkBytes: Math.floor(scratchBytes / scratchChunks) }
      : {}),
    ranks: gpus.map((gpu, rank) => readGpu(gpu, rank, nRanks)),
  };
}

/** Sizes of calls that the plan is for. MSCCL++ writes 2^64 - 1 for any. */
function sizesOf(file: JsonReader): Pick<OneSidedProgram, 'leastBytes' | 'mostBytes'> {
  const least = file.optional('min_message_size')?.number() ?? 0;
  const most = file.optional('max_message_size')?.number() ?? Infinity;
  return { ...(least > 0 ? { leastBytes: least } : {}), ...(most < MOST_BYTES ? { mostBytes: most } : {}) };
}

/** The objects that a thread block's operations name by number. */
interface Names {
  readonly nRanks: number;
  /** Channels of the block, by kind of channel. */
  readonly channels: ReadonlyMap<string, readonly SignalChannel[]>;
  /** Buffers of other ranks that the block uses, by kind of channel. */
  readonly remote: ReadonlyMap<string, readonly FarBuffer[]>;
  readonly switches: readonly FarBuffer[];
}

interface FarBuffer {
  readonly ranks: readonly number[];
  readonly buffer: Local['buffer'];
}

function readGpu(gpu: JsonReader, rank: number, nRanks: number): OneSidedRank {
  const channels = new Map<string, SignalChannel[]>();
  const switches: FarBuffer[] = [];
  const numbers = new Map<string, number>();
  for (const channel of gpu.field('channels').items()) {
    const type = (channel.optional('channel_type') ?? channel.field('type')).oneOf(['memory', 'port', 'switch']);
    if (type === 'switch') {
      const buffer = bufferOf(channel.optional('buffer_type') ?? channel.field('buff'));
      for (const group of channel.field('rank_groups').items())
        switches.push({ ranks: group.field('ranks').integers(0, nRanks - 1), buffer });
      continue;
    }
    for (const peer of channel.field('connected_to').integers(0, nRanks - 1)) {
      const key = `${type} ${peer}`;
      const number = numbers.get(key) ?? 0;
      numbers.set(key, number + 1);
      // The n-th channel of a kind to a rank meets the n-th one of that rank.
      append(channels, type, { peer, number: number * 2 + (type === 'port' ? 1 : 0) });
    }
  }
  const buffers = (gpu.optional('remote_buffers')?.items() ?? []).map((buffer) => ({
    ranks: [buffer.field('rank').integer(0, nRanks - 1)],
    buffer: bufferOf(buffer.field('type')),
  }));
  return {
    scratchChunks: gpu.field('scratch_chunks').integer(0, MOST_CHUNKS),
    semaphores: (gpu.optional('semaphores')?.items() ?? []).map((semaphore) => semaphore.field('init_value').integer(0)),
    blocks: gpu
      .field('threadblocks')
      .items()
      .map((block, index) => {
        block.field('id').integer(index, index);
        const own = new Map<string, SignalChannel[]>();
        const ownSwitches: FarBuffer[] = [];
        for (const refs of block.field('channels').items()) {
          const type = refs.field('channel_type').oneOf(['memory', 'port', 'switch']);
          const known = type === 'switch' ? switches : (channels.get(type) ?? []);
          for (const id of refs.field('channel_ids').items()) {
            const channel = known[id.integer(0)];
            if (channel === undefined) throw id.wrong(`one of the ${known.length} channels of kind ${type} of gpu ${rank}`);
            if ('buffer' in channel) ownSwitches.push(channel);
            else append(own, type, channel);
          }
        }
        const remote = new Map<string, FarBuffer[]>();
        for (const refs of block.optional('remote_buffer_refs')?.items() ?? []) {
          const type = refs.field('access_channel_type').oneOf(['memory', 'port']);
          for (const id of refs.field('remote_buffer_ids').items()) {
            const buffer = buffers[id.integer(0)];
            if (buffer === undefined) throw id.wrong(`one of the ${buffers.length} remote buffers of gpu ${rank}`);
            append(remote, type, buffer);
          }
        }
        const names = { nRanks, channels: own, remote, switches: ownSwitches };
        return block
          .field('ops')
          .items()
          .flatMap((op, number) => readOp(op, names, countBarriers(gpu)).map((step) => ({ ...step, at: String(number) })));
      }),
  };
}

/** By number of a barrier: the thread blocks that name it. */
function countBarriers(gpu: JsonReader): (op: JsonReader) => number {
  return (op) => {
    const named = op.optional('num_threadblocks');
    if (named !== undefined) return named.integer(1);
    const id = op.field('barrier_id').integer(0);
    return gpu
      .field('threadblocks')
      .items()
      .filter((block) =>
        block
          .field('ops')
          .items()
          .some((each) => each.field('name').text() === 'barrier' && each.field('barrier_id').integer(0) === id),
      ).length;
  };
}

function readOp(op: JsonReader, names: Names, barrierBlocks: (op: JsonReader) => number): OneSidedStep[] {
  const name = op.field('name').text();
  const rule = Object.hasOwn(MOVES, name) ? MOVES[name] : undefined;
  if (rule !== undefined) return readMove(op, rule, names);
  switch (name) {
    case 'signal':
    case 'rlxsignal':
      return [{ kind: 'signal', channels: channelsOf(op, names) }];
    case 'wait':
    case 'rlxwait':
      return [{ kind: 'wait', channels: channelsOf(op, names) }];
    // A block's operations run in sequence, and sent data may be changed.
    case 'nop':
    case 'flush':
      return [];
    case 'barrier':
      return [{ kind: 'barrier', barrier: op.field('barrier_id').integer(0), blocks: barrierBlocks(op) }];
    case 'sem_acquire':
    case 'sem_release':
      return [
        {
          kind: name === 'sem_acquire' ? 'acquire' : 'release',
          semaphores: op.field('semaphore_ids').integers(0, Number.MAX_SAFE_INTEGER),
        },
      ];
    case 'pipeline': {
      const context = op.field('iter_context');
      return [
        {
          kind: 'repeat',
          unitBytes: context.field('unit_size').integer(1, MOST_BYTES),
          chunks: context.field('num_chunks').integer(1, MOST_CHUNKS),
          steps: op
            .field('ops')
            .items()
            .flatMap((inner, number) => readOp(inner, names, barrierBlocks).map((step) => ({ ...step, at: `ops[${number}]` }))),
        },
      ];
    }
    default: {
      const known = [...Object.keys(MOVES), ...OTHERS];
      throw op.field('name').wrong(`an operation of MSCCL++${didYouMean(name, known) || `: ${known.join(', ')}`}`);
    }
  }
}

function channelsOf(op: JsonReader, { channels }: Names): SignalChannel[] {
  const type = op.field('channel_type').oneOf(['memory', 'port']);
  const known = channels.get(type) ?? [];
  return op
    .field('channel_ids')
    .items()
    .map((id) => {
      const channel = known[id.integer(0)];
      if (channel === undefined) throw id.wrong(`one of the ${known.length} channels of kind ${type} of its thread block`);
      return channel;
    });
}

function readMove(
  op: JsonReader,
  { reads, writes, isPairwise = false, signals = false }: MoveRule,
  names: Names,
): OneSidedStep[] {
  const reduceOp = op.optional('reduce_op');
  if (reduceOp !== undefined && reduceOp.text() !== 'sum') throw reduceOp.wrong('sum, which is what is verified');
  const places = (field: string, flags: MoveRule['reads']) =>
    op
      .field(field)
      .items()
      .map((place, index): FarPlace => ({
        ...placeOf(place, op, names),
        ...(flags === 'flags' || (flags === 'flags behind the first' && index > 0) ? { hasFlags: true } : {}),
      }));
  const from = places('src_buff', reads);
  const to = places('dst_buff', writes);
  if (from.length === 0) throw op.field('src_buff').wrong('a list with a buffer');
  const info = op.optional('tbg_info');
  const of = info?.field('tbg_size').integer(1, 1024);
  const part = info === undefined || of === undefined ? {} : { part: { index: info.field('tb_id').integer(0, of - 1), of } };
  const moves: OneSidedStep[] = isPairwise
    ? to.map((target, index) => ({
        kind: 'move',
        from: from.slice(from.length === 1 ? 0 : index).slice(0, 1),
        to: [target],
        ...part,
      }))
    : [{ kind: 'move', from, to, ...part }];
  return signals ? [...moves, { kind: 'signal', channels: channelsOf(op, names) }] : moves;
}

function placeOf(place: JsonReader, op: JsonReader, { remote, switches }: Names): FarPlace {
  const range = { chunk: place.field('index').integer(0, MOST_CHUNKS), count: place.field('size').integer(1, MOST_CHUNKS) };
  const far = place.optional('buffer_id');
  if (far !== undefined) {
    const known = remote.get(op.field('channel_type').text()) ?? [];
    const buffer = known[far.integer(0)];
    if (buffer === undefined) throw far.wrong(`one of the ${known.length} remote buffers of its thread block`);
    return { ...buffer, ...range };
  }
  const group = place.optional('switch_channel_id');
  if (group !== undefined) {
    const buffer = switches[group.integer(0)];
    if (buffer === undefined) throw group.wrong(`one of the ${switches.length} switch channels of its thread block`);
    return { ...buffer, ...range, isSwitch: true };
  }
  return { buffer: bufferOf(place.field('type')), ...range };
}

function bufferOf(reader: JsonReader): Local['buffer'] {
  const name = reader.text();
  const buffer = Object.hasOwn(BUFFERS, name) ? BUFFERS[name] : undefined;
  if (buffer === undefined) throw reader.wrong('i, o or s');
  return buffer;
}

function append<Value>(lists: Map<string, Value[]>, key: string, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
