import type { ScheduledCollective } from '../../schedule/schedule.js';

/** Calls of which measurements are in the accuracy notes: by generation of GPUs, hosts and size. */
interface Measured {
  /** Compute capabilities × 10. */
  readonly sms: readonly number[];
  /** Hosts of the measured jobs, at most. */
  readonly hosts: readonly [least: number, most: number];
  readonly leastBytes: number;
  readonly collectives: readonly ScheduledCollective[];
}

const MIB = 2 ** 20;
const ring: readonly ScheduledCollective[] = ['AllReduce', 'AllGather', 'ReduceScatter'];

/** Groups of docs/notes/accuracy.md. */
const measured: readonly Measured[] = [
  { sms: [80], hosts: [1, 1], leastBytes: 0, collectives: [...ring, 'AllToAll'] },
  { sms: [80], hosts: [2, 10], leastBytes: MIB, collectives: ['AllReduce'] },
  { sms: [80], hosts: [2, 10], leastBytes: 128 * MIB, collectives: ['AllGather'] },
  { sms: [90], hosts: [1, 1], leastBytes: 0, collectives: [...ring, 'AllToAll'] },
  { sms: [90], hosts: [1, 1], leastBytes: MIB, collectives: ['SendRecv'] },
  { sms: [90], hosts: [2, 10], leastBytes: MIB, collectives: [...ring, 'AllToAll', 'SendRecv'] },
  { sms: [100], hosts: [1, 1], leastBytes: 0, collectives: [...ring, 'AllToAll'] },
];

/** True if predictions of such a call were compared with measurements of clusters of this kind. */
export function isMeasured(
  collective: ScheduledCollective,
  bytes: number,
  { sms, nHosts }: { readonly sms: ReadonlySet<number>; readonly nHosts: number },
): boolean {
  return [...sms].every((sm) =>
    measured.some(
      (each) =>
        each.sms.includes(sm) &&
        nHosts >= each.hosts[0] &&
        nHosts <= each.hosts[1] &&
        bytes >= each.leastBytes &&
        each.collectives.includes(collective),
    ),
  );
}
