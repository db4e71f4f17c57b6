import { SaxesParser } from 'saxes';
import { InputError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import type { ChunkPlace, Program, ProgramBlock, ProgramRank, ProgramStep } from './program.js';
import type { ScheduledCollective } from './schedule.js';

/** The collectives of MSCCL by name. */
const COLLECTIVES: Readonly<Record<string, ScheduledCollective>> = {
  allreduce: 'AllReduce',
  allgather: 'AllGather',
  reduce_scatter: 'ReduceScatter',
  broadcast: 'Broadcast',
  reduce: 'Reduce',
  alltoall: 'AllToAll',
};
/** MSCCL's name of an algorithm whose result the file does not define. */
const WITHOUT_RESULT = 'custom';
const PROTOCOLS = ['LL', 'LL128', 'Simple'] as const;
const BUFFERS: Readonly<Record<string, ChunkPlace['buffer']>> = { i: 'input', o: 'output', s: 'scratch' };
/** Steps by their `type`; `nop` only waits. */
const KINDS: Readonly<Record<string, ProgramStep['kind'] | 'nop'>> = {
  s: 'send',
  r: 'receive',
  rcs: 'forward',
  rrs: 'reduce-send',
  rrc: 'reduce-copy',
  rrcs: 'reduce-copy-send',
  cpy: 'copy',
  re: 'add',
  nop: 'nop',
};
/** More steps than any algorithm has. */
const MOST_ELEMENTS = 2_000_000;

interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly line: number;
  readonly parent: Element | undefined;
  readonly children: Element[];
}

/**
 * Reads an algorithm in MSCCL's XML (`<algo>` with `<gpu>`, `<tb>`, `<step>`), as msccl-tools writes it.
 *
 * @throws InputError with the line, thread block and step: no XML, an attribute that is missing or impossible
 */
export function readMscclXml(text: string): Program {
  const algo = parse(text);
  if (algo.name !== 'algo') throw wrong(algo, `the file has <${algo.name}> where an MSCCL algorithm has <algo>`);
  const nRanks = integer(algo, 'ngpus', 1);
  const name = attribute(algo, 'coll');
  const collective = Object.hasOwn(COLLECTIVES, name) ? COLLECTIVES[name] : undefined;
  if (name === WITHOUT_RESULT)
    throw wrong(
      algo,
      `coll="${name}" defines no result, so nothing can be verified; name the collective that it carries out: ${Object.keys(COLLECTIVES).join(', ')}`,
    );
  if (collective === undefined)
    throw wrong(
      algo,
      `coll="${name}" is no collective whose result is known${didYouMean(name, Object.keys(COLLECTIVES)) || `; these are: ${Object.keys(COLLECTIVES).join(', ')}`}`,
    );
  const protocol = PROTOCOLS.find((each) => each === attribute(algo, 'proto'));
  if (protocol === undefined) throw wrong(algo, `proto="${attribute(algo, 'proto')}" is none of ${PROTOCOLS.join(', ')}`);
  const ranks: ProgramRank[] = [];
  for (const gpu of algo.children.filter((child) => child.name === 'gpu')) {
    const id = integer(gpu, 'id', 0);
    if (id >= nRanks || ranks[id] !== undefined)
      throw wrong(gpu, id >= nRanks ? `there is no gpu ${id} of ${nRanks}` : `gpu ${id} is there twice`);
    ranks[id] = readRank(gpu);
  }
  const missing = Array.from({ length: nRanks }, (_, rank) => rank).find((rank) => ranks[rank] === undefined);
  if (missing !== undefined) throw wrong(algo, `gpu ${missing} of ${nRanks} is missing`);
  return {
    name: algo.attributes['name'] ?? 'an algorithm',
    collective,
    nRanks,
    chunks: integer(algo, 'nchunksperloop', 1),
    protocol,
    isInPlace: algo.attributes['inplace'] === '1',
    ranks,
  };
}

function readRank(gpu: Element): ProgramRank {
  const elements = gpu.children.filter(({ name }) => name === 'tb');
  const byId = new Map(elements.map((tb) => [integer(tb, 'id', 0), tb]));
  // Steps that only wait join the next one, so numbers of steps change.
  const places = new Map([...byId].map(([id, tb]) => [id, placesOf(tb)]));
  const numbers = new Map([...byId.keys()].map((id, index) => [id, index]));
  return { scratchChunks: integer(gpu, 's_chunks', 0), blocks: [...byId.values()].map((tb) => readBlock(tb, numbers, places)) };
}

/** By number of a step in the file: its position among steps other than waits; a wait counts as the step before. */
function placesOf(tb: Element): number[] {
  let next = 0;
  return stepsOf(tb).map((step) => (step.attributes['type'] === 'nop' ? next - 1 : next++));
}

function stepsOf(tb: Element): Element[] {
  return tb.children.filter(({ name }) => name === 'step').sort((a, b) => integer(a, 's', 0) - integer(b, 's', 0));
}

function readBlock(
  tb: Element,
  numbers: ReadonlyMap<number, number>,
  places: ReadonlyMap<number, readonly number[]>,
): ProgramBlock {
  const [send, receive] = [integer(tb, 'send', -1), integer(tb, 'recv', -1)];
  const steps: ProgramStep[] = [];
  let waits: NonNullable<ProgramStep['after']>[number][] = [];
  for (const step of stepsOf(tb)) {
    const depends = integer(step, 'depid', -1);
    if (depends >= 0) {
      const [block, place] = [numbers.get(depends), places.get(depends)?.[integer(step, 'deps', -1)]];
      if (block === undefined || place === undefined)
        throw wrong(step, `it depends on step ${attribute(step, 'deps')} of tb ${depends}, which is not there`);
      if (place >= 0) waits.push({ block, step: place });
    }
    const type = attribute(step, 'type');
    const kind = Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
    if (kind === undefined) throw wrong(step, `type="${type}" is none of ${Object.keys(KINDS).join(', ')}`);
    if (kind === 'nop') continue;
    steps.push({
      kind,
      id: integer(step, 's', 0),
      ...(kind === 'receive' || kind === 'forward' ? {} : { from: place(step, 'src') }),
      ...(kind === 'send' || kind === 'reduce-send' ? {} : { to: place(step, 'dst') }),
      count: integer(step, 'cnt', 1),
      ...(waits.length === 0 ? {} : { after: waits }),
    });
    waits = [];
  }
  return {
    id: integer(tb, 'id', 0),
    channel: integer(tb, 'chan', 0),
    ...(send < 0 ? {} : { sendTo: send }),
    ...(receive < 0 ? {} : { receiveFrom: receive }),
    steps,
  };
}

function place(step: Element, end: 'src' | 'dst'): ChunkPlace {
  const name = attribute(step, `${end}buf`);
  const buffer = Object.hasOwn(BUFFERS, name) ? BUFFERS[name] : undefined;
  if (buffer === undefined) throw wrong(step, `${end}buf="${name}" is none of i, o, s`);
  return { buffer, chunk: integer(step, `${end}off`, -1) };
}

function attribute(element: Element, name: string): string {
  const value = element.attributes[name];
  if (value === undefined) throw wrong(element, `<${element.name}> has no ${name}`);
  return value;
}

function integer(element: Element, name: string, least: number): number {
  const text = attribute(element, name);
  const value = Number(text);
  if (!/^-?\d{1,9}$/.test(text) || value < least)
    throw wrong(element, `${name}="${text}" of <${element.name}> has to be a whole number from ${least} on`);
  return value;
}

function wrong(element: Element, problem: string): InputError {
  const place = placeOf(element);
  return new InputError('CONTENT', place === '' ? problem : `${place}: ${problem}`, { line: element.line });
}

/** `gpu 0, tb 1, step 2`: the numbers that the file gives an element and those around it. */
function placeOf({ name, attributes, parent }: Element): string {
  const number = attributes[name === 'step' ? 's' : 'id'];
  const outer = parent === undefined ? '' : placeOf(parent);
  if (number === undefined || !['gpu', 'tb', 'step'].includes(name)) return outer;
  return `${outer === '' ? '' : `${outer}, `}${name} ${number}`;
}

function parse(text: string): Element {
  const parser = new SaxesParser();
  const open: Element[] = [];
  let root: Element | undefined;
  let count = 0;
  parser.on('error', (error) => {
    throw new InputError('SYNTAX', `no XML: ${error.message.replace(/^\d+:\d+: /, '')}`, { line: parser.line });
  });
  parser.on('opentag', ({ name, attributes }) => {
    if (++count > MOST_ELEMENTS) throw new InputError('TOO_LARGE', `more than ${MOST_ELEMENTS} elements`);
    const element: Element = { name, attributes, line: parser.line, parent: open.at(-1), children: [] };
    open.at(-1)?.children.push(element);
    root ??= element;
    open.push(element);
  });
  parser.on('closetag', () => {
    open.pop();
  });
  parser.write(text).close();
  if (root === undefined) throw new InputError('SYNTAX', 'no XML: there is no element');
  return root;
}
