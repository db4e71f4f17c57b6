import { addToAll, cellView, combiners, load, loadCombined, membersAt, store, update, type Order } from './accesses.js';
import { pureInstructions, type Value, type View } from './arithmetic.js';
import type { Block, Thread } from './block.js';
import { checkAccess, MemoryError, type Place } from './memory.js';
import { PtxError, split, type Statement, type Variable, type Width } from './parse.js';

/** Executes one instruction of a thread, and gives the place of the next one. */
export type Operation = (thread: Thread) => number;

/** A barrier changes `place` itself; the end has none. */
export const STAYS = -1;

/** Makes the operations of a block's kernel. Throws PtxError for instructions and forms that it does not know. */
export function compile(block: Block): Operation[] {
  return block.kernel.code.map((statement, place) => {
    const operation = compileStatement(block, statement, place + 1);
    if (statement.guard === undefined) return operation;
    const guard = reader(block, statement.guard.register, 'pred', statement);
    const wanted = Number(statement.guard.wanted);
    return (thread) => (guard(thread) === wanted ? operation(thread) : place + 1);
  });
}

function compileStatement(block: Block, statement: Statement, next: number): Operation {
  const { mnemonic } = statement;
  const pure = pureInstructions.get(mnemonic);
  if (pure !== undefined) return compilePure(block, statement, pure.views, pure.run as (...values: Value[]) => Value, next);
  const [name = ''] = mnemonic.split('.');
  const special = specials.get(name);
  if (special === undefined) throw unknown(statement);
  return special(block, statement, next);
}

function unknown({ text }: Statement): PtxError {
  return new PtxError(`the interpreter does not know: ${text}`);
}

const specials: ReadonlyMap<string, (block: Block, statement: Statement, next: number) => Operation> = new Map([
  ['ret', compileReturn],
  ['bra', compileBranch],
  ['bar', compileBarrier],
  ['mov', compileMove],
  ['ld', compileLoad],
  ['st', compileStore],
  ['cvta', compileToGlobal],
  ['cvt', compileConvert],
  ['atom', compileAtomic],
  ['multimem', compileMulticast],
]);

// ── registers ───────────────────────────────────────────────────────────────────────────────────────────────────────

const widths: Readonly<Record<View, Width>> = { pred: 1, b16: 16, u32: 32, s32: 32, f32: 32, u64: 64, s64: 64, f64: 64 };

function register(block: Block, name: string, width: Width, statement: Statement): number {
  const found = block.kernel.registers.get(name);
  if (found?.width !== width) throw new PtxError(`${name} is no register of ${width} bits: ${statement.text}`);
  return found.index;
}

/** Reads a register or an integer. */
function reader(block: Block, operand: string, view: View, statement: Statement): (thread: Thread) => Value {
  if (!operand.startsWith('%')) {
    const [, kind, digits = ''] = /^0([fd])((?:[\dA-F]{8}){1,2})$/.exec(operand) ?? [];
    if (kind !== undefined) {
      const floats: Partial<Record<string, (bits: DataView) => Value>> =
        kind === 'f' && digits.length === 8
          ? { f32: (bits) => bits.getFloat32(0), u32: (bits) => bits.getUint32(0) }
          : { f64: (bits) => bits.getFloat64(0), u64: (bits) => bits.getBigUint64(0) };
      const bits = new DataView(new ArrayBuffer(8));
      bits.setBigUint64(0, BigInt(`0x${digits.padEnd(16, '0')}`));
      const constant = floats[view]?.(bits);
      if (constant === undefined) throw unknown(statement);
      return () => constant;
    }
    if (!/^-?\d+$/.test(operand) || !/^[usb]/.test(view)) throw unknown(statement);
    const bits = widths[view];
    const exact = BigInt(operand);
    const wrapped = view.startsWith('s') ? BigInt.asIntN(bits, exact) : BigInt.asUintN(bits, exact);
    const constant = bits === 64 ? wrapped : Number(wrapped);
    return () => constant;
  }
  const index = register(block, operand, widths[view], statement);
  const { nRegisters: n, words, signedWords, floats, doubles, signedDoubles, floats64 } = block;
  switch (view) {
    case 's32':
      return (thread) => signedWords[2 * (thread.index * n + index)] ?? 0;
    case 'f32':
      return (thread) => floats[2 * (thread.index * n + index)] ?? 0;
    case 'u64':
      return (thread) => doubles[thread.index * n + index] ?? 0n;
    case 's64':
      return (thread) => signedDoubles[thread.index * n + index] ?? 0n;
    case 'f64':
      return (thread) => floats64[thread.index * n + index] ?? 0;
    case 'pred':
      return (thread) => (words[2 * (thread.index * n + index)] ?? 0) & 1;
    default:
      return (thread) => words[2 * (thread.index * n + index)] ?? 0;
  }
}

/** A NaN that an instruction of float32 makes. */
const NAN_FLOAT32 = 0x7fffffff;

function writer(block: Block, operand: string, view: View, statement: Statement): (thread: Thread, value: Value) => void {
  const index = register(block, operand, widths[view], statement);
  const { nRegisters: n, words, floats, doubles, floats64 } = block;
  switch (view) {
    case 'f32':
      return (thread, value) => {
        const at = 2 * (thread.index * n + index);
        floats[at] = value as number;
        if (value !== value) words[at] = NAN_FLOAT32;
      };
    case 'u64':
    case 's64':
      return (thread, value) => {
        doubles[thread.index * n + index] = value as bigint;
      };
    case 'f64':
      return (thread, value) => {
        floats64[thread.index * n + index] = value as number;
      };
    default:
      return (thread, value) => {
        words[2 * (thread.index * n + index)] = value as number;
      };
  }
}

function compilePure(
  block: Block,
  statement: Statement,
  views: readonly View[],
  run: (...values: Value[]) => Value,
  next: number,
): Operation {
  if (statement.operands.length !== views.length) throw unknown(statement);
  const [target = '', ...sources] = statement.operands;
  const write = writer(block, target, views[0] ?? 'u32', statement);
  const [a, b, c, ...more] = sources.map((operand, i) => reader(block, operand, views[i + 1] ?? 'u32', statement));
  const zero = (): Value => 0;
  const [first, second, third] = [a ?? zero, b ?? zero, c ?? zero];
  if (b === undefined) return (thread) => (write(thread, run(first(thread))), next);
  if (c === undefined) return (thread) => (write(thread, run(first(thread), second(thread))), next);
  return (thread) => (
    write(thread, run(first(thread), second(thread), third(thread), ...more.map((read) => read(thread)))),
    next
  );
}

const specialRegisters: ReadonlyMap<string, (block: Block, thread: Thread) => number> = new Map([
  ['%tid.x', (_, thread) => thread.index],
  ['%ntid.x', (block) => block.nThreads],
  ['%ctaid.x', (block) => block.index],
  ['%nctaid.x', (block) => block.nBlocks],
]);

/** Moves of registers, addresses of variables, registers of the hardware, and halves to and from their whole. */
function compileMove(block: Block, statement: Statement, next: number): Operation {
  const bits = { b32: 32, u32: 32, b64: 64, u64: 64 }[statement.mnemonic.slice('mov.'.length)] as 32 | 64 | undefined;
  const [target = '', source = '', ...others] = statement.operands;
  if (bits === undefined || others.length > 0) throw unknown(statement);
  const view = bits === 32 ? 'u32' : 'u64';
  const half = bits === 32 ? 'b16' : 'u32';
  if (target.startsWith('{')) {
    const [low, high] = listed(target).map((name) => writer(block, name, half, statement));
    const read = reader(block, source, view, statement);
    if (low === undefined || high === undefined) throw unknown(statement);
    const [mask, shift] = bits === 32 ? [0xffffn, 16n] : [0xffffffffn, 32n];
    return (thread) => {
      const value = BigInt(read(thread));
      low(thread, Number(value & mask));
      high(thread, Number(value >> shift));
      return next;
    };
  }
  const write = writer(block, target, view, statement);
  if (source.startsWith('{')) {
    const [low, high] = listed(source).map((name) => reader(block, name, half, statement));
    if (low === undefined || high === undefined) throw unknown(statement);
    if (bits === 32) return (thread) => (write(thread, (Number(low(thread)) & 0xffff) | (Number(high(thread)) << 16)), next);
    return (thread) => (write(thread, BigInt(low(thread)) | (BigInt(high(thread)) << 32n)), next);
  }
  const ofHardware = specialRegisters.get(source);
  if (ofHardware !== undefined && bits === 32) return (thread) => (write(thread, ofHardware(block, thread)), next);
  const { parameters, shared } = block.kernel;
  const variable = shared.get(source) ?? (bits === 64 ? parameters.get(source) : undefined);
  if (variable !== undefined) {
    const address = bits === 32 ? variable.offset : BigInt(variable.offset);
    return (thread) => (write(thread, address), next);
  }
  const read = reader(block, source, view, statement);
  return (thread) => (write(thread, read(thread)), next);
}

const listed = (text: string): string[] => (text.startsWith('{') ? split(text.slice(1, -1)) : [text]);

// ── control ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function compileReturn(block: Block, statement: Statement): Operation {
  if (statement.mnemonic !== 'ret' || statement.operands.length > 0) throw unknown(statement);
  return (thread) => {
    block.leave(thread);
    return STAYS;
  };
}

function compileBranch(block: Block, statement: Statement): Operation {
  const target = block.kernel.labels.get(statement.operands[0] ?? '');
  if (!/^bra(\.uni)?$/.test(statement.mnemonic) || target === undefined) throw unknown(statement);
  return () => target;
}

function compileBarrier(block: Block, statement: Statement): Operation {
  const { mnemonic, operands } = statement;
  if (mnemonic === 'bar.sync' && operands.join() === '0') {
    return (thread) => {
      block.arrive(thread, undefined);
      return STAYS;
    };
  }
  const [target = '', barrier, predicate = ''] = operands;
  if (mnemonic !== 'bar.red.or.pred' || barrier !== '0') throw unknown(statement);
  const result = register(block, target, 1, statement);
  const read = reader(block, predicate, 'pred', statement);
  return (thread) => {
    thread.predicate = Number(read(thread));
    block.arrive(thread, result);
    return STAYS;
  };
}

// ── memory ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Access {
  readonly order: Order;
  readonly space: 'global' | 'shared' | 'param';
  readonly bytes: 1 | 2 | 4 | 8;
  /** The bits are extended by the sign. */
  readonly isSigned: boolean;
  readonly count: number;
}

function accessOf(statement: Statement): Access {
  const match =
    /^(?:ld|st)(?:\.(relaxed|acquire|release)\.sys)?\.(global|shared|param)(?:\.v([24]))?\.([bsuf])(8|16|32|64)$/.exec(
      statement.mnemonic,
    );
  if (match === null) throw unknown(statement);
  const [, order = 'weak', space, count = '1', type, bits] = match;
  return {
    order: order as Order,
    space: space as Access['space'],
    bytes: (Number(bits) / 8) as Access['bytes'],
    isSigned: type === 's',
    count: Number(count),
  };
}

/** The region and the offset of `[%d1+16]`. */
function locator(
  block: Block,
  operand: string,
  { space }: Pick<Access, 'space'>,
  statement: Statement,
): (thread: Thread) => Place {
  const { name, offset } = placeIn(operand, statement);
  if (space === 'shared') {
    const read = addressReader(block, name, block.kernel.shared, statement);
    return (thread) => ({ region: block.shared, offset: Number(read(thread)) + offset });
  }
  // By halves: bigints would take most of the time.
  const index = register(block, name, 64, statement);
  const { nRegisters: n, words } = block;
  const { memory } = block.system;
  return (thread) => {
    const at = 2 * (thread.index * n + index);
    const place = memory.atWords(words[at] ?? 0, words[at + 1] ?? 0);
    return offset === 0 ? place : { region: place.region, offset: place.offset + offset };
  };
}

/** The parts of `[%d1+16]`. */
function placeIn(operand: string, statement: Statement): { readonly name: string; readonly offset: number } {
  const match = /^\[(%?[\w$]+)(?:\+(-?\d+))?\]$/.exec(operand);
  if (match === null) throw unknown(statement);
  return { name: match[1] ?? '', offset: Number(match[2] ?? 0) };
}

/** Reads an address from a register, or that of a variable. */
function addressReader(
  block: Block,
  name: string,
  variables: ReadonlyMap<string, Variable>,
  statement: Statement,
): (thread: Thread) => Value {
  const variable = variables.get(name);
  if (variable !== undefined) return () => variable.offset;
  return reader(block, name, block.kernel.registers.get(name)?.width === 64 ? 'u64' : 'u32', statement);
}

/** View of a register that an access reads or writes: it has as many bits as the element or more. */
function viewOf(block: Block, name: string, bytes: Access['bytes']): View {
  if (bytes === 8) return 'u64';
  return block.kernel.registers.get(name)?.width === 16 && bytes <= 2 ? 'b16' : 'u32';
}

function compileLoad(block: Block, statement: Statement, next: number): Operation {
  const access = accessOf(statement);
  const [targets = '', place = ''] = statement.operands;
  const writes = listed(targets).map((name) => writer(block, name, viewOf(block, name, access.bytes), statement));
  if (writes.length !== access.count || access.order === 'release') throw unknown(statement);
  const { bytes, count, order, isSigned } = access;
  if (access.space === 'param') return compileParameter(block, statement, writes, access, next);
  const locate = locator(block, place, access, statement);
  return (thread) => {
    const { region, offset } = locate(thread);
    if (region.members.length > 0) throw new MemoryError(`an ordinary load of the multicast object ${region.name}`);
    checkAccess(region, offset, bytes * count);
    for (let i = 0; i < count; i++) {
      load(block, thread, region, offset + bytes * i, bytes, order);
      writes[i]?.(thread, fromCell(bytes, isSigned));
    }
    return next;
  };
}

function compileParameter(
  block: Block,
  statement: Statement,
  writes: readonly ((thread: Thread, value: Value) => void)[],
  { bytes, count }: Access,
  next: number,
): Operation {
  const { name, offset: displacement } = placeIn(statement.operands[1] ?? '', statement);
  const read = addressReader(block, name, block.kernel.parameters, statement);
  const { parameters } = block;
  const region = {
    name: 'the parameters',
    bytes: new Uint8Array(),
    view: parameters,
    members: [],
    length: parameters.byteLength,
  };
  return (thread) => {
    const offset = Number(read(thread)) + displacement;
    checkAccess(region, offset, bytes * count);
    for (let i = 0; i < count; i++) {
      const at = offset + bytes * i;
      writes[i]?.(thread, bytes === 8 ? parameters.getBigUint64(at, true) : parameters.getUint32(at, true));
    }
    return next;
  };
}

function fromCell(bytes: Access['bytes'], isSigned = false): Value {
  if (isSigned && bytes < 4) return bytes === 2 ? cellView.getInt16(0, true) : cellView.getInt8(0);
  if (bytes === 8) return cellView.getBigUint64(0, true);
  return bytes === 4 ? cellView.getUint32(0, true) : bytes === 2 ? cellView.getUint16(0, true) : cellView.getUint8(0);
}

function toCell(bytes: Access['bytes'], value: Value): void {
  if (bytes === 8) cellView.setBigUint64(0, value as bigint, true);
  else cellView.setUint32(0, value as number, true);
}

function compileStore(block: Block, statement: Statement, next: number): Operation {
  const access = accessOf(statement);
  const [place = '', sources = ''] = statement.operands;
  const reads = listed(sources).map((name) => reader(block, name, viewOf(block, name, access.bytes), statement));
  const { bytes, count, order } = access;
  const isReleaseOfVector = order === 'release' && count > 1;
  if (reads.length !== count || order === 'acquire' || access.space === 'param' || isReleaseOfVector) throw unknown(statement);
  const locate = locator(block, place, access, statement);
  return (thread) => {
    const { region, offset } = locate(thread);
    if (region.members.length > 0) throw new MemoryError(`an ordinary store to the multicast object ${region.name}`);
    checkAccess(region, offset, bytes * count);
    for (let i = 0; i < count; i++) {
      toCell(bytes, reads[i]?.(thread) ?? 0);
      store(block, thread, region, offset + bytes * i, bytes, order);
    }
    return next;
  };
}

/** An address of global memory is the same as a generic one. */
function compileToGlobal(block: Block, statement: Statement, next: number): Operation {
  if (!/^cvta(\.to)?\.global\.u64$/.test(statement.mnemonic)) throw unknown(statement);
  return compilePure(block, statement, ['u64', 'u64'], (address) => address, next);
}

/** Conversions between integers, whose registers may be wider. */
function compileConvert(block: Block, statement: Statement, next: number): Operation {
  const match = /^cvt\.([us])(8|16|32|64)\.([us])(8|16|32|64)$/.exec(statement.mnemonic);
  if (match === null) throw unknown(statement);
  const [, toSign, toBits, fromSign, fromBits] = match;
  const wrap = (sign: string | undefined, bits: string | undefined, value: bigint): bigint =>
    sign === 's' ? BigInt.asIntN(Number(bits), value) : BigInt.asUintN(Number(bits), value);
  const views = statement.operands.map((name, i): View => {
    const width = block.kernel.registers.get(name)?.width ?? 32;
    if (width < Number(i === 0 ? toBits : fromBits)) throw unknown(statement);
    return width === 64 ? 'u64' : width === 32 ? 'u32' : 'b16';
  });
  const run = (value: Value): Value => {
    const converted = wrap(toSign, toBits, wrap(fromSign, fromBits, BigInt(value)));
    return views[0] === 'u64' ? converted : Number(converted);
  };
  return compilePure(block, statement, views, run, next);
}

/** A relaxed read-modify-write of all that a GPU executes; it returns what was there. */
function compileAtomic(block: Block, statement: Statement, next: number): Operation {
  const [, name = '', type = ''] = /^atom\.global\.(add|min|max)\.([us](?:32|64))$/.exec(statement.mnemonic) ?? [];
  const operation = pureInstructions.get(`${name}.${type}`);
  const [target = '', place = '', operand = ''] = statement.operands;
  if (operation === undefined) throw unknown(statement);
  const view = type as View;
  const bytes = widths[view] === 64 ? 8 : 4;
  const [write, read] = [writer(block, target, view, statement), reader(block, operand, view, statement)];
  const locate = locator(block, place, { space: 'global' }, statement);
  const run = operation.run as unknown as (a: Value, b: Value) => Value;
  return (thread) => {
    const { region, offset } = locate(thread);
    checkAccess(region, offset, bytes);
    update(block, thread, region, offset, bytes, (bits) => {
      const before = view.startsWith('s') ? BigInt.asIntN(8 * bytes, bits) : bits;
      const value = bytes === 8 ? before : Number(before);
      write(thread, value);
      return BigInt(run(value, read(thread)));
    });
    return next;
  };
}

function compileMulticast(block: Block, statement: Statement, next: number): Operation {
  const { mnemonic, operands } = statement;
  const [, order] = /^multimem\.red\.(relaxed|release)\.sys\.global\.add\.u64$/.exec(mnemonic) ?? [];
  if (order !== undefined) {
    const locate = locator(block, operands[0] ?? '', { space: 'global' }, statement);
    const read = reader(block, operands[1] ?? '', 'u64', statement);
    return (thread) => {
      const { region, offset } = locate(thread);
      addToAll(block, thread, membersAt(region, offset, 8), offset, read(thread) as bigint, order === 'release');
      return next;
    };
  }
  const match = /^multimem\.(ld_reduce|st)\.relaxed\.sys\.global\.([\w.:]+)$/.exec(mnemonic);
  const count = Number(/\bv([248])\b/.exec(match?.[2] ?? '')?.[1] ?? 1);
  const type = match?.[2]?.replace(/\bv[248]\./, '') ?? '';
  if (match?.[1] === 'st') return compileMulticastStore(block, statement, type, count, next);
  const combiner = combiners.get(type);
  if (combiner === undefined) throw unknown(statement);
  const writes = listed(operands[0] ?? '').map((name) => writer(block, name, viewOf(block, name, combiner.bytes), statement));
  const locate = locator(block, operands[1] ?? '', { space: 'global' }, statement);
  if (writes.length !== count) throw unknown(statement);
  return (thread) => {
    const { region, offset } = locate(thread);
    const members = membersAt(region, offset, combiner.bytes * count);
    for (let i = 0; i < count; i++) {
      const value = loadCombined(block, thread, members, offset + combiner.bytes * i, combiner);
      writes[i]?.(thread, combiner.bytes === 8 ? value : Number(value));
    }
    return next;
  };
}

function compileMulticastStore(block: Block, statement: Statement, type: string, count: number, next: number): Operation {
  const bytes = ({ f32: 4, b64: 8 } as const)[type];
  const isKnown = (bytes === 4 && count === 4) || (bytes === 8 && count === 1);
  if (bytes === undefined || !isKnown) throw unknown(statement);
  const locate = locator(block, statement.operands[0] ?? '', { space: 'global' }, statement);
  const reads = listed(statement.operands[1] ?? '').map((name) => reader(block, name, viewOf(block, name, bytes), statement));
  if (reads.length !== count) throw unknown(statement);
  return (thread) => {
    const { region, offset } = locate(thread);
    for (const member of membersAt(region, offset, bytes * count))
      for (let i = 0; i < count; i++) {
        toCell(bytes, reads[i]?.(thread) ?? 0);
        store(block, thread, member, offset + bytes * i, bytes, 'relaxed');
      }
    return next;
  };
}
