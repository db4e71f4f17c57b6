import { statOf, textOf } from '../proc.js';

/** Words for states of a process, by the kernel's letter for it, in the order in which one is chosen among several. */
const states = {
  T: 'is stopped',
  t: 'is held by a debugger',
  R: 'computes',
  D: 'waits for a disk or a network file system',
  S: 'sleeps',
} as const;

/** A process of a rank, and its state. */
export interface RankState {
  readonly rank: number;
  readonly pid: number;
  readonly state: keyof typeof states;
}

/** State of a rank's process, or of one that this started, as a shell starts a program. Undefined where there is no /proc. */
export function stateOf(rank: number, pid: number): RankState | undefined {
  const all = processesOf(pid).flatMap((one): RankState[] => {
    const { state = '' } = statOf(`/proc/${one}`) ?? {};
    return state in states ? [{ rank, pid: one, state: state as keyof typeof states }] : [];
  });
  const found = Object.keys(states).find((letter) => all.some(({ state }) => state === letter));
  return all.findLast(({ state }) => state === found);
}

/** `process 4711 is stopped`. */
export function describeState({ pid, state }: RankState): string {
  return `process ${pid} ${states[state]}`;
}

/** A process and all that descend from it. */
function processesOf(pid: number): number[] {
  const children = textOf(`/proc/${pid}/task/${pid}/children`).split(' ').map(Number);
  return [pid, ...children.filter((child) => child > 0).flatMap(processesOf)];
}
