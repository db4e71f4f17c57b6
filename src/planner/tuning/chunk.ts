import { patGoesThroughNvls } from './cost-model/pat.js';
import type { TuningInput } from './input.js';
import { floorLog2, sizeProduct } from './integers.js';
import type { NcclAlgorithm, Collective, Protocol } from './names.js';
import { rulesOf } from '../versions/rules.js';
import type { Tuning } from './tune.js';

const { floor, fround, min } = Math;
const KIB = 1024;

/** Steps of a connection's buffer; rings with Simple move four of them as one chunk where data goes around. */
const STEPS_PER_BUFFER = 8;
const STEPS_PER_RING_CHUNK = 4;
const BYTES_PER_WARP_LL128 = 1920;

/** Chunks are a multiple of this. */
const grainBytes: Readonly<Record<Protocol, number>> = { LL: 16, LL128: BYTES_PER_WARP_LL128, Simple: 512 };

/** The parts of a choice that determine its chunks. */
interface ChunkedCall {
  readonly collective: Collective;
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
  readonly bytes: number;
  readonly nChannels: number;
}

/**
 * Size of a chunk, bytes: limited by the buffers, and smaller where the data would be too few chunks for ranks to work at the
 * same time.
 */
export function chunkBytes({ input, model }: Tuning, call: ChunkedCall): number {
  const nvlsIsSlow = rulesOf(input).nvlsSmallWhereSlow && input.nNodes > 1 && model.AllReduce.NVLS.Simple.bandwidthGBps < 150;
  const chunk = unalignedChunk(input, call, nvlsIsSlow);
  const grain = rulesOf(input).chunksOfWholeLines ? grainBytes[call.protocol] : 1;
  return floor(chunk / grain) * grain;
}

function unalignedChunk(input: TuningInput, call: ChunkedCall, nvlsIsSlow: boolean): number {
  const most = bufferChunk(input, call);
  switch (call.algorithm) {
    case 'CollNetDirect':
      return collnetDirectChunk(input, call, most);
    case 'CollNetChain':
      return collnetChainChunk(input, call);
    case 'NVLS':
      return nvlsChunk(input, call, min(most, nvlsIsSlow ? 32 * KIB : (input.nvls?.chunkBytes ?? most)));
    case 'NVLSTree':
      return nvlsTreeChunk(input, call, most);
    case 'Tree':
      return treeChunk(input, call, most);
    case 'PAT':
      return halved(
        patGoesThroughNvls(input) ? min(most, input.nvls?.chunkBytes ?? most) : most,
        64 * KIB,
        (chunk) => sizeProduct(chunk, call.nChannels, call.collective === 'AllGather' ? 32 : 16) > call.bytes,
      );
    case 'Ring':
      return most;
  }
}

/** The limit by the buffers of the protocol: half of LL's and 1/16 of LL128's are flags. */
function bufferChunk({ buffers }: TuningInput, { collective, algorithm, protocol }: ChunkedCall): number {
  const goesAround = collective !== 'Broadcast' && collective !== 'Reduce';
  switch (protocol) {
    case 'LL':
      return floor(floor(buffers.ll / STEPS_PER_BUFFER) / 2);
    case 'LL128':
      return floor(floor(buffers.ll128 / STEPS_PER_BUFFER) / 16) * 15;
    case 'Simple':
      return floor(buffers.simple / STEPS_PER_BUFFER) * (algorithm === 'Ring' && goesAround ? STEPS_PER_RING_CHUNK : 1);
  }
}

function collnetDirectChunk({ collnet }: TuningInput, { bytes, nChannels }: ChunkedCall, most: number): number {
  const { directHeads, directDepth } = collnet ?? { directHeads: 1, directDepth: 1 };
  const fewerThan = (loops: number) => (chunk: number) =>
    floor(bytes / sizeProduct(nChannels, directHeads, chunk)) < directDepth * loops;
  return halved(halved(most, 128 * KIB, fewerThan(64)), 32 * KIB, fewerThan(8));
}

function collnetChainChunk({ collnet, buffers }: TuningInput, { bytes, nChannels }: ChunkedCall): number {
  const depth = collnet?.chainDepth ?? 1;
  const most = min(256 * KIB, floor(buffers.simple / STEPS_PER_BUFFER));
  const fewerThan = (loops: number) => (chunk: number) => floor(bytes / sizeProduct(nChannels, chunk)) < depth * loops;
  return halved(halved(halved(most, 128 * KIB, fewerThan(64)), 64 * KIB, fewerThan(8)), 32 * KIB, fewerThan(1));
}

/** Halves a chunk while it is above a limit and too big. */
function halved(most: number, limit: number, isTooBig: (chunk: number) => boolean): number {
  let chunk = most;
  while (isTooBig(chunk) && chunk > limit) chunk = floor(chunk / 2);
  return chunk;
}

function nvlsChunk({ nvls }: TuningInput, { bytes, nChannels }: ChunkedCall, most: number): number {
  return stepped(most, bytes, nChannels * (nvls?.nHeads ?? 1), [
    [64, 64 * KIB],
    [8, 32 * KIB],
    [2, 16 * KIB],
  ]);
}

function nvlsTreeChunk(input: TuningInput, { bytes, nChannels }: ChunkedCall, buffer: number): number {
  const { nvls } = input;
  const most = rulesOf(input).nvlsTreeChunk === 'nvls' ? (nvls?.chunkBytes ?? 0) : buffer;
  return stepped(min(most, nvls?.treeMaxChunkBytes ?? most), bytes, nChannels * (nvls?.nHeads ?? 1), [
    [32, 256 * KIB],
    [16, 128 * KIB],
    [4, 64 * KIB],
    [1, 32 * KIB],
  ]);
}

/**
 * Limits of the size of chunks, one after the other: with fewer than `chunks` chunks at each of `together` places, the size
 * is at most the given one.
 */
function stepped(
  most: number,
  bytes: number,
  together: number,
  steps: readonly (readonly [loops: number, limit: number])[],
): number {
  return steps.reduce((chunk, [loops, limit]) => (bytes < loops * together * chunk ? min(chunk, limit) : chunk), most);
}

function treeChunk(input: TuningInput, call: ChunkedCall, most: number): number {
  const { treeChunks } = rulesOf(input);
  switch (call.protocol) {
    case 'LL':
      return most;
    case 'LL128': {
      if (treeChunks !== 'simple too') return treeLl128Chunk(input, call, most);
      return floor(treeLl128Chunk(input, call, floor(input.buffers.ll128 / STEPS_PER_BUFFER)) / 16) * 15;
    }
    case 'Simple':
      return treeChunks === 'simple too' ? treeSimpleChunk(input, call, most) : most;
  }
}

/** Older versions make chunks of Simple smaller, too, so that the whole tree is busy. */
function treeSimpleChunk({ treeDepth }: TuningInput, { bytes, nChannels }: ChunkedCall, most: number): number {
  const fewerThan = (loops: number) => (chunk: number) => floor(bytes / sizeProduct(nChannels, chunk)) < treeDepth * loops;
  return halved(halved(halved(most, 128 * KIB, fewerThan(8)), 64 * KIB, fewerThan(4)), 32 * KIB, fewerThan(1));
}

/** A tree needs as many chunks as it is deep to be busy all the time. */
function treeLl128Chunk({ nRanks, nNodes }: TuningInput, { bytes, nChannels }: ChunkedCall, most: number): number {
  const ranksPerNode = fround(nRanks / nNodes);
  const depth = fround(1 + floorLog2(nNodes) + 0.1 * ranksPerNode);
  const fewerThan = (loops: number) => (chunk: number) =>
    fround(floor(bytes / sizeProduct(nChannels, chunk))) < fround(fround(depth * loops) / ranksPerNode);
  return halved(halved(most, 128 * KIB, fewerThan(64)), 32 * KIB, fewerThan(16));
}
