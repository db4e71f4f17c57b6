import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { describeCall, type Call } from '../../runtime/algorithms/call.js';
import { BOARD_BYTES, STATE_BYTES } from '../../runtime/device/board-layout.js';
import { flightRecording, type FlightRecording } from '../../runtime/observe/flight-recording.js';
import { linkOf, namesIn, processIds, statOf, textOf } from '../../runtime/proc.js';
import { boardsIn, readBoard, type ReadAt, type ShownCommunicator, type ShownRank } from '../../runtime/observe/read-boards.js';

/** A rank's process, as /proc shows it; of a rank that is a thread, its state and processor time. */
export interface RankProcess {
  /** Number outside its container, if it has another one inside. */
  readonly pid: number;
  readonly parent: number;
  /** State of its main thread: R, S, D, T, t, Z … */
  readonly state: string;
  /** Processor time of all its threads so far. */
  readonly cpuMs: number;
  readonly command: string;
}

/** A rank on this host: what it shows, and its process if that is alive. */
export interface InspectedRank extends ShownRank {
  readonly process: RankProcess | undefined;
  /** Text of its last collective, as far as known. */
  readonly lastCall: string | undefined;
  /** Its last calls, if they were asked for. */
  readonly recording?: FlightRecording | undefined;
}

/** The ranks of this user on one host. */
export interface HostReport {
  readonly host: string;
  readonly atMs: number;
  readonly ranks: readonly InspectedRank[];
}

const LINK = /^\/memfd:tccl(?: \(deleted\))?$/;

/**
 * Reads the boards of all ranks of this user on this host, from the files that they share: a rank that is stopped or computes is
 * read like any other. Files of other users cannot be opened.
 * @param withCalls true for the last calls of each rank, too: some 600 kB
 */
export function readHost(withCalls = false): HostReport {
  const files = new Map<number, { readonly path: string; readonly pids: number[] }>();
  for (const pid of processes()) {
    for (const { path, inode } of memoryFiles(pid)) {
      const known = files.get(inode);
      if (known === undefined) files.set(inode, { path, pids: [pid] });
      else if (!known.pids.includes(pid)) known.pids.push(pid);
    }
  }
  const atMs = Date.now();
  const found = [...files.values()].flatMap(({ path, pids }) => {
    const holders = pids.map((pid) => ({ pid, inner: innerPid(pid) }));
    return boardsOf(path, withCalls).flatMap((bytes) => {
      const board = readBoard(bytes);
      if (board === undefined) return [];
      const recording = withCalls ? flightRecording(bytes, hostname(), atMs) : undefined;
      return [{ board, recording, pid: holders.find(({ inner }) => inner === board.pid)?.pid }];
    });
  });
  // Of a rank with several segments, as after grow(), every board is one.
  return { host: hostname(), atMs, ranks: found.map(({ board, recording, pid }) => ({ ...inspected(board, pid), recording })) };
}

function inspected(board: ShownRank, pid: number | undefined): InspectedRank {
  const [last] = board.communicators
    .filter(({ begun }) => begun > 0)
    .sort((a, b) => (b.waited?.order ?? 0) - (a.waited?.order ?? 0));
  return {
    ...board,
    process: pid === undefined ? undefined : processFacts(pid, board),
    lastCall: last === undefined ? undefined : lastCallText(last),
  };
}

/** `allReduce of 1024 float32 (sum), call 17`; only the number of a call that has not waited. */
function lastCallText(communicator: ShownCommunicator): string {
  const { begun, name } = communicator;
  const waited = lastWaited(communicator);
  const call = `call ${begun - 1}${name === undefined ? '' : ` of ${JSON.stringify(name)}`}`;
  return waited === undefined ? call : `${callText(waited.call)}, ${call}`;
}

/** The last collective of a communicator, if it has waited. */
function lastWaited({ begun, waited }: ShownCommunicator): ShownCommunicator['waited'] {
  return waited?.number === begun - 1 ? waited : undefined;
}

/** The algorithm is not recorded. */
function callText(call: Call): string {
  return describeCall(call)
    .replace(/(?:, |\()direct\)$/, (end) => (end.startsWith(',') ? ')' : ''))
    .trimEnd();
}

function processes(): number[] {
  const own = process.getuid?.();
  return processIds().filter((pid) => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === own);
}

function memoryFiles(pid: number): { readonly path: string; readonly inode: number }[] {
  const folder = `/proc/${pid}/fd`;
  return namesIn(folder).flatMap((fd) => {
    const path = `${folder}/${fd}`;
    const inode = LINK.test(linkOf(path) ?? '') ? statSync(path, { throwIfNoEntry: false })?.ino : undefined;
    return inode === undefined ? [] : [{ path, inode }];
  });
}

function boardsOf(path: string, areWhole: boolean): Uint8Array[] {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return [];
  }
  const read: ReadAt = (at, bytes) => {
    const buffer = new Uint8Array(bytes);
    return buffer.subarray(0, readSync(fd, buffer, 0, bytes, at));
  };
  try {
    return boardsIn(read).map((at) => read(at, areWhole ? BOARD_BYTES : STATE_BYTES));
  } finally {
    closeSync(fd);
  }
}

/** Number of a process or thread in its own container. */
function innerPid(pid: number, folder = `/proc/${pid}`): number {
  const [, numbers = String(pid)] = /^NSpid:\s*(.*)$/m.exec(textOf(`${folder}/status`)) ?? [];
  return Number(numbers.trim().split(/\s+/).at(-1));
}

/** Folder of a rank in /proc: that of its thread, if it is not a process of its own. */
function folderOf(pid: number, { pid: innerProcess, thread }: Pick<ShownRank, 'pid' | 'thread'>): string {
  if (thread === 0 || thread === innerProcess) return `/proc/${pid}`;
  const tasks = `/proc/${pid}/task`;
  // Numbers differ inside containers.
  return `${tasks}/${namesIn(tasks).find((task) => innerPid(Number(task), `${tasks}/${task}`) === thread) ?? 'none'}`;
}

function processFacts(pid: number, rank: Pick<ShownRank, 'pid' | 'thread'>): RankProcess | undefined {
  const stat = statOf(folderOf(pid, rank));
  if (stat === undefined) return undefined;
  const { state, parent, cpuMs } = stat;
  return { pid, state, parent, cpuMs, command: textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim().slice(0, 200) };
}
