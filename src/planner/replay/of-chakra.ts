import { InputError } from '../../errors.js';
import { type ChakraNode, chakraCollectives } from '../readers/chakra.js';
import { TimeQueue } from './queue.js';
import { collectiveNamed, NO_NAME, type RankCall, type RankTrace, type TraceStep } from './trace.js';

/** A file of one rank. */
export interface ChakraFile {
  readonly rank: number;
  readonly name: string;
  readonly nodes: readonly ChakraNode[];
}

/** A node with the calls that it waits for, through nodes of the CPU too. */
interface Pending {
  readonly node: ChakraNode;
  missing: number;
  readonly calls: Set<RankCall>;
  readonly next: Pending[];
}

/** Order of nodes that may run: calls, work that waits for none, and work that does. */
const CALLS = 0;
const WORK = 1;
const WAITING_WORK = 2;

/**
 * Execution traces of Chakra, one for each rank. They have dependencies in place of times: kernels of the GPU run one after the
 * other, calls beside them, and a kernel that depends on a call waits for it. Nodes of the CPU take no time. A communicator has
 * the ranks whose traces name it.
 *
 * @throws InputError for nodes that wait for each other
 */
export function ofChakra(files: readonly ChakraFile[]): RankTrace[] {
  const sizes = new Map<string, number>();
  for (const { nodes } of files)
    for (const group of new Set(nodes.filter(isCall).map(groupOf))) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  return files.map((file) => traceOf(file, sizes, files.length));
}

function traceOf({ rank, name, nodes }: ChakraFile, sizes: ReadonlyMap<string, number>, nRanks: number): RankTrace {
  const steps: TraceStep[] = [];
  const calls: RankCall[] = [];
  const waited = new Set<RankCall>();
  let workUs = 0;
  // The rank's clock: its work, and calls whose time is known.
  let nowUs = 0;
  const ends = new Map<RankCall, number>();
  const wait = (call: RankCall) => {
    if (waited.has(call)) return;
    waited.add(call);
    steps.push({ kind: 'wait', call, atUs: workUs });
    nowUs = Math.max(nowUs, ends.get(call) ?? 0);
  };
  let done = 0;
  const ready = new TimeQueue<Pending>();
  // Nodes of equal order run as the file has them.
  const add = (pending: Pending) => ready.add(orderOf(pending, waited), pending);
  for (const pending of pendingOf(nodes)) if (pending.missing === 0) add(pending);
  for (let next = ready.take(); next !== undefined; next = ready.take()) {
    const { node, calls: before, next: after } = next.entry;
    done++;
    if (isCall(node)) {
      const call = callOf(node, nowUs, sizes);
      for (const each of before) if (each.stream !== call.stream) wait(each);
      calls.push(call);
      steps.push({ kind: 'issue', call, atUs: workUs });
      ends.set(call, nowUs + (call.durationUs ?? 0));
      // The sender goes on while its message is on the way.
      if (node.kind !== 'send') for (const each of after) each.calls.add(call);
    } else if (isOnCpu(node)) {
      for (const each of after) for (const call of before) each.calls.add(call);
    } else {
      for (const call of before) wait(call);
      workUs += node.durationUs;
      nowUs += node.durationUs;
    }
    for (const each of after) if (--each.missing === 0) add(each);
  }
  if (done < nodes.length) throw new InputError('CONTENT', `${nodes.length - done} nodes that wait for each other`);
  return {
    rank,
    file: name,
    nRanks,
    calls,
    compute: undefined,
    clock: 'order',
    order: { steps, workUs, endUs: [...ends.values()].reduce((last, end) => Math.max(last, end), nowUs) },
  };
}

function pendingOf(nodes: readonly ChakraNode[]): Pending[] {
  const byId = new Map(nodes.map((node): [number, Pending] => [node.id, { node, missing: 0, calls: new Set(), next: [] }]));
  for (const pending of byId.values())
    // Nodes that a trace lacks, such as those of a step before, are done.
    for (const id of new Set(pending.node.after)) {
      const before = byId.get(id);
      if (before === undefined) continue;
      before.next.push(pending);
      pending.missing++;
    }
  return [...byId.values()];
}

function orderOf({ node, calls }: Pending, waited: ReadonlySet<RankCall>): number {
  if (isCall(node) || isOnCpu(node)) return CALLS;
  return [...calls].every((call) => waited.has(call)) ? WORK : WAITING_WORK;
}

function isOnCpu({ attributes }: ChakraNode): boolean {
  return attributes.get('is_cpu_op') === 1;
}

/** Calls of the GPU: PyTorch has a node of the CPU for each, too. */
function isCall(node: ChakraNode): boolean {
  return (node.kind === 'collective' || node.kind === 'send' || node.kind === 'receive') && !isOnCpu(node);
}

function groupOf({ attributes }: ChakraNode): string {
  return String(attributes.get('pg_name') ?? '');
}

function callOf(node: ChakraNode, startUs: number, sizes: ReadonlyMap<string, number>): RankCall {
  const { kind, attributes, durationUs } = node;
  const numberAt = (name: string) => Number(attributes.get(name) ?? 0);
  const group = groupOf(node);
  const bytes = numberAt('comm_size');
  const size = sizes.get(group) ?? 0;
  const of = {
    ...{ group, groupName: group === '' ? NO_NAME : group, members: undefined, size, type: undefined, sequence: undefined },
    ...{ startUs, durationUs: durationUs > 0 ? durationUs : undefined },
  };
  if (kind === 'send' || kind === 'receive') {
    const isSend = kind === 'send';
    const messages = [{ isSend, peer: numberAt(isSend ? 'comm_dst' : 'comm_src'), bytes }];
    return { ...of, operation: isSend ? 'send' : 'recv', collective: undefined, messages, bytes, stream: `${group} ${kind}` };
  }
  const operation = chakraCollectives[numberAt('comm_type')] ?? 'collective';
  // Chakra counts what a rank gives to the call.
  const isPart = operation === 'all_gather' || operation === 'gather';
  return {
    ...of,
    operation,
    collective: collectiveNamed(operation),
    bytes: bytes * (isPart ? Math.max(1, size) : 1),
    stream: group,
  };
}
