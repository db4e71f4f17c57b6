import { merged } from '../readers/kineto.js';
import type { NsightCall, NsightGpu, NsightOperation } from '../readers/nsight.js';
import {
  BATCH,
  busiest,
  collectiveNamed,
  NO_NAME,
  partsOfRanks,
  type RankCall,
  type RankMessage,
  type RankTrace,
} from './trace.js';

/** GPUs of an export of Nsight Systems. */
export interface NsightFile {
  readonly name: string;
  /** By the file's name, where it has a rank. */
  readonly rank: number | undefined;
  readonly gpus: readonly NsightGpu[];
}

const NO_SIZES =
  'the export has no sizes of calls: trace NVTX (nsys profile --trace=cuda,nvtx) and export with nsys export --type sqlite --include-blobs=true';

/** A communicator: its ranks by their numbers in the job, where their start was recorded. */
interface Group {
  readonly size: number;
  readonly members: (number | undefined)[];
}

/**
 * Exports of Nsight Systems. The communicator with the most ranks has those of the job; where no start of one was recorded, GPUs
 * are numbered as they come.
 */
export function ofNsight(files: readonly NsightFile[]): RankTrace[] {
  const gpus = files.flatMap(({ name, rank, gpus: own }) =>
    own
      .filter(({ calls }) => calls.length > 0)
      .sort((a, b) => a.device - b.device || a.process - b.process)
      .map((gpu, place) => ({ name, gpu, named: rank === undefined ? undefined : rank + place })),
  );
  const [world] = gpus.flatMap(({ gpu }) => gpu.memberships).sort((a, b) => b.nRanks - a.nRanks);
  const ranks = gpus.map(({ gpu, named }, place) => {
    const own = gpu.memberships.find(({ communicator }) => communicator === world?.communicator);
    return own?.rank ?? named ?? place;
  });
  const groups = new Map<string, Group>();
  gpus.forEach(({ gpu: { memberships } }, place) => {
    for (const { communicator, rank, nRanks } of memberships) {
      const group = groups.get(communicator) ?? { size: nRanks, members: Array.from({ length: nRanks }, () => undefined) };
      groups.set(communicator, group);
      group.members[rank] = ranks[place];
    }
  });
  const nRanks = world?.nRanks;
  return gpus.map(({ name, gpu }, place): RankTrace => {
    const calls = gpu.calls.map((call) => callOf(call, groups));
    const lacks = gpu.calls.some(({ operations }) => operations.some(({ bytes }) => bytes !== undefined))
      ? {}
      : { lacks: NO_SIZES };
    return {
      ...{ rank: ranks[place] ?? place, file: name, nRanks, calls, compute: merged(gpu.compute), clock: 'gpu' },
      ...lacks,
    };
  });
}

function callOf({ kernel, operations, stream, startUs, durationUs }: NsightCall, groups: ReadonlyMap<string, Group>): RankCall {
  const [first] = operations;
  const communicator = first?.communicator;
  const group = communicator === undefined ? undefined : groups.get(communicator);
  const members = group?.members.every((rank) => rank !== undefined) === true ? group.members : undefined;
  const size = group?.size ?? 0;
  const of = {
    ...{ group: communicator ?? '', groupName: communicator ?? NO_NAME, members, size, type: undefined, sequence: undefined },
    ...{ stream, startUs, durationUs },
  };
  const messages = operations.flatMap((operation) => messageOf(operation, group));
  if (messages.length > 0) {
    const operation = messages.length > 1 ? BATCH : (first?.name.toLowerCase() ?? BATCH);
    return { ...of, operation, collective: undefined, messages, bytes: busiest(messages) };
  }
  const operation = first?.bytes === undefined ? kernel : first.name;
  const collective = collectiveNamed(operation);
  const isPart = collective !== undefined && partsOfRanks.has(collective);
  // Several operations of one kernel are taken as one.
  const bytes = operations.reduce((sum, each) => sum + (each.bytes ?? 0), 0);
  return { ...of, operation, collective, bytes: bytes * (isPart ? Math.max(1, size) : 1) };
}

function messageOf({ name, peer, bytes = 0 }: NsightOperation, group: Group | undefined): RankMessage[] {
  const isSend = name === 'Send';
  if ((!isSend && name !== 'Recv') || peer === undefined) return [];
  return [{ isSend, peer: group?.members[peer] ?? peer, bytes }];
}
