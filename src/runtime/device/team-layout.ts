/**
 * Memory that the ranks of one communicator share on one host, in their segment:
 *
 *     0        one control block for each rank (kernels/assembly/control-block.ts), followed by:
 *
 *     0        abort: 0, or 1 + the local rank that the failure is about; then the reason (index in abortReasons); then 0, or
 *              1 + the number of the first operation of *direct* that a rank has given up
 *     64       failure: its length (-1 while it is written), then the error of the first rank that failed
 *     1024     one line for each rank: 1 once it has left the communicator, 2 once it does not read this memory any more;
 *              then its report of a wait (wait-report.ts)
 *     …        u32 for each pair of ranks: address of the mailbox from one to the other (0: none yet)
 *
 * The segment belongs to the ranks that started together, and a communicator to those of them that are its members: several
 * communicators have several teams on one segment. Local ranks here are indexes in the team.
 */
export const ABORT = 0;
export const FAILURE = 64;
export const LEFT = 1024;
export const LINE = 128;
/** Index in a line. */
export const REPORT = 1;

/** Size of a team of `nRanks`, where `blockBytes` is the size of a control block. */
export function teamBytes(nRanks: number, blockBytes: number): number {
  return headerBytes(nRanks) + nRanks * blockBytes;
}

/** Size of a team's memory after the control blocks. */
export function headerBytes(nRanks: number): number {
  return LEFT + nRanks * LINE + nRanks * nRanks * 4;
}
