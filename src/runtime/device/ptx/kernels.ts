import { emitBody } from './body.js';
import { Builder, type Double, type Predicate, type Word } from './builder.js';
import { canCombine, elementBytes, hasType, isNarrow, type ElementType, type Operator } from './element-types.js';
import { blockWorkers, first, gridWorkers, RecordReader } from './record-reader.js';
import type { Arithmetic } from './reduction.js';
import { RECORD_BYTES } from './step-record.js';
import { levels, ptxVersions, type Level } from './targets.js';
import { emitWireBody } from './wire-body.js';
import { hasMulticast, lines, multicast } from './wires.js';

/**
 * Order of a kernel with other GPUs and the host:
 *
 *     stream     one step, which begins after what its stream did before: no thread ever waits
 *     flags      steps that wait for counters in memory and post others: NCCL's protocol Simple
 *     lines      the same, and data with flags of their own: NCCL's LL, for small messages
 *     multicast  as `flags`, and addresses that NVLink's switch combines or multiplies: NVLS
 *
 * All but `stream` spin: only where each rank has a GPU of its own.
 */
export type Protocol = 'stream' | 'flags' | 'lines' | 'multicast';
export const protocols: readonly Protocol[] = ['stream', 'flags', 'lines', 'multicast'];

/** A kernel: what it does with the elements, and its order. */
export interface KernelDescription {
  readonly protocol: Protocol;
  readonly arithmetic: Arithmetic;
}

export const elementTypes = Object.keys(elementBytes) as ElementType[];
export const operators: readonly Operator[] = [
  ...(['sum', 'prod', 'min', 'max', 'avg', 'premulSum'] as const),
  ...(['band', 'bor', 'bxor', 'land', 'lor'] as const),
];

/** All kernels. Those of signed sums and products are those of the unsigned types (`kernelFor`). */
export function allKernels(): KernelDescription[] {
  const arithmetics: Arithmetic[] = [1, 2, 4, 8].map((bytes) => ({ bytes: bytes as Arithmetic['bytes'] }));
  for (const type of elementTypes)
    for (const operator of operators) {
      if (!canCombine(type, operator) || sameBits(type, operator) !== type) continue;
      arithmetics.push({ bytes: elementBytes[type], type, operator });
      if (isNarrow(type) && (operator === 'sum' || operator === 'avg'))
        arithmetics.push({ bytes: elementBytes[type], type, operator, accumulator: 'float32' });
    }
  return protocols.flatMap((protocol) =>
    arithmetics.filter((each) => protocol !== 'multicast' || isOnSwitch(each)).map((arithmetic) => ({ protocol, arithmetic })),
  );
}

function isOnSwitch({ type, operator, accumulator }: Arithmetic): boolean {
  if (type === undefined || operator === undefined) return true;
  return accumulator === undefined && hasMulticast(type, operator);
}

/** The kernel that combines elements, or moves those of a size. */
export function kernelFor(
  protocol: Protocol,
  elements: { type: ElementType; operator: Operator; accumulator?: 'float32' } | { bytes: Arithmetic['bytes'] },
): KernelDescription {
  if (!('type' in elements)) return { protocol, arithmetic: elements };
  const type = sameBits(elements.type, elements.operator);
  return { protocol, arithmetic: { ...elements, type, bytes: elementBytes[type] } };
}

/** Signed and unsigned integers differ in order and division alone: other results have the same bits, modulo 2^bits. */
function sameBits(type: ElementType, operator: Operator): ElementType {
  const isOrdered = operator === 'min' || operator === 'max' || operator === 'avg';
  return !isOrdered && type.startsWith('int') ? (`u${type}` as ElementType) : type;
}

/** Name of a kernel, which is that of its entry, too. */
export function kernelName({ protocol, arithmetic: { bytes, type, operator, accumulator } }: KernelDescription): string {
  const elements = type === undefined ? `copy_${bytes}` : `reduce_${operator}_${type}${accumulator ? `_in_${accumulator}` : ''}`;
  return `${elements}_${protocol}`;
}

/** The levels that have texts of their own; architectures below the first one lack the kernel. */
export function levelsOf({ protocol, arithmetic }: KernelDescription): Level[] {
  if (protocol === 'multicast') return [90];
  // Levels differ in arithmetic alone, which all protocols have alike.
  const inStream = { protocol: 'stream', arithmetic } as const;
  const able = levels.filter((level) => arithmetic.type === undefined || hasType(arithmetic.type, level));
  return able.filter((level, i) => i === 0 || entryText(inStream, level) !== entryText(inStream, able[i - 1] ?? level));
}

/** A module of PTX with kernels for a level and all architectures after it. */
export function moduleText(kernels: readonly KernelDescription[], level: Level): string {
  const header = `.version ${ptxVersions[level]}\n.target sm_${level}\n.address_size 64\n`;
  return header + kernels.map((kernel) => `\n${entryText(kernel, level)}`).join('');
}

function entryText(kernel: KernelDescription, level: Level): string {
  const key = `${kernelName(kernel)} ${level}`;
  const text = texts.get(key) ?? makeEntry(kernel, level);
  texts.set(key, text);
  return text;
}

const texts = new Map<string, string>();

function makeEntry(kernel: KernelDescription, level: Level): string {
  const ptx = new Builder(level);
  const { protocol, arithmetic } = kernel;
  const name = kernelName(kernel);
  if (protocol === 'stream') {
    const record = new RecordReader(ptx, { space: 'param', base: ptx.addressOf('b64', 'step') });
    emitBody(ptx, record, gridWorkers(ptx), arithmetic);
    return `.visible .entry ${name}(.param .align 16 .b8 step[${RECORD_BYTES}])\n{\n${ptx.text()}}\n`;
  }
  const records = `  .shared .align 16 .b8 records[${2 * RECORD_BYTES}];\n`;
  emitSteps(ptx, protocol, arithmetic);
  return `.visible .entry ${name}(.param .b64 steps, .param .b32 nSteps, .param .b64 abort)\n{\n${records}${ptx.text()}}\n`;
}

/**
 * A block's list of steps, RECORD_BYTES × nSteps bytes of it for each block:
 *
 *     copy the record to shared memory, wait for its flags  →  all threads  →  data  →  all threads  →  post its flags
 *
 * A record is copied beside the one before it, which some threads may still read. If the word at `abort` is not 0, threads
 * that wait give up, and the block ends.
 */
function emitSteps(ptx: Builder, protocol: 'flags' | 'lines' | 'multicast', arithmetic: Arithmetic): void {
  const parameter = (name: string): Parameters<Builder['load']>[0] => ({ space: 'param', base: ptx.addressOf('b64', name) });
  const list = first(ptx.load(parameter('steps'), { bits: 64 }));
  const nSteps = first(ptx.load(parameter('nSteps'), { bits: 32 }));
  const abort = first(ptx.load(parameter('abort'), { bits: 64 }));
  const records = ptx.addressOf('b32', 'records');
  const start = ptx.make('mul.wide.u32', ptx.make('mul.lo.u32', ptx.block, nSteps), RECORD_BYTES);
  const source = ptx.make('add.u64', list, start);
  const mustStop = (): Predicate =>
    ptx.make('setp.ne.u32', first(ptx.load({ space: 'global', base: abort }, { bits: 32 }, 'relaxed')), 0);

  ptx.count(0, nSteps, (index) => {
    const slot = ptx.make('mad.lo.u32', ptx.make('and.b32', index, 1), RECORD_BYTES, records);
    const record = new RecordReader(ptx, { space: 'shared', base: slot });
    // Not yet.
    const aborted = ptx.make('setp.ne.u32', slot, slot);
    emitCopyOfRecord(ptx, source, slot);
    ptx.note('wait');
    const inMemory = new RecordReader(ptx, { space: 'global', base: source });
    eachThread(ptx, inMemory.word('nWaits'), (at) => {
      const [flag, value] = inMemory.entry('waits', at, 16);
      ptx.until(() => {
        const now = first(ptx.load({ space: 'global', base: flag }, { bits: 64 }, 'acquire'));
        const isOver = ptx.make('setp.ge.u64', now, value);
        ptx.when(ptx.make('not.pred', isOver), () => {
          ptx.into(aborted, 'mov.pred', mustStop());
          ptx.into(isOver, 'mov.pred', aborted);
        });
        return isOver;
      });
    });
    ptx.leaveWhen(ptx.barrierAny(aborted));
    emitData(ptx, protocol, arithmetic, record, () => {
      ptx.into(aborted, 'or.pred', aborted, mustStop());
      return aborted;
    });
    if (protocol === 'lines') ptx.leaveWhen(ptx.barrierAny(aborted));
    else ptx.barrier();
    ptx.note('post');
    emitPosts(ptx, protocol, record);
    ptx.into(source, 'add.u64', source, RECORD_BYTES);
  });
}

function emitData(ptx: Builder, protocol: Protocol, arithmetic: Arithmetic, record: RecordReader, stop: () => Predicate): void {
  if (protocol === 'flags') emitBody(ptx, record, blockWorkers(ptx), arithmetic);
  else if (protocol === 'multicast') emitWireBody(ptx, record, blockWorkers(ptx), arithmetic, multicast(ptx, arithmetic));
  else {
    const wire = lines(ptx, record.word('lineFlag'), arithmetic.bytes === 8 ? 'b64' : 'b32', stop);
    emitWireBody(ptx, record, blockWorkers(ptx), arithmetic, wire);
  }
}

function emitCopyOfRecord(ptx: Builder, source: Double, slot: Word): void {
  const at = ptx.make('mul.lo.u32', ptx.thread, 8);
  ptx.while(
    () => ptx.make('setp.lt.u32', at, RECORD_BYTES),
    () => {
      const from = ptx.make('add.u64', source, ptx.make('cvt.u64.u32', at));
      ptx.store(
        { space: 'shared', base: ptx.make('add.u32', slot, at) },
        64,
        ptx.load({ space: 'global', base: from }, { bits: 64 }),
      );
      ptx.into(at, 'mad.lo.u32', ptx.threads, 8, at);
    },
  );
}

function emitPosts(ptx: Builder, protocol: Protocol, record: RecordReader): void {
  const nPosts = record.word('nPosts');
  const plain = protocol === 'multicast' ? ptx.make('sub.u32', nPosts, record.word('nMulticastPosts')) : nPosts;
  eachThread(ptx, nPosts, (at) => {
    const [flag, value] = record.entry('posts', at, 16);
    const post = (): void => ptx.store({ space: 'global', base: flag }, 64, [value], 'release');
    if (protocol !== 'multicast') post();
    else ptx.either(ptx.make('setp.lt.u32', at, plain), post, () => ptx.addMulticast(flag, value));
  });
}

/** Emits a loop that gives each thread of the block its part of some entries. */
function eachThread(ptx: Builder, count: Word, emit: (index: Word) => void): void {
  const at = ptx.make('mov.b32', ptx.thread);
  ptx.while(
    () => ptx.make('setp.lt.u32', at, count),
    () => {
      emit(at);
      ptx.into(at, 'add.u32', at, ptx.threads);
    },
  );
}
