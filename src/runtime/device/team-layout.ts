/**
 * What the ranks of one communicator share on one host, in memory of their segment:
 *
 *     0        one control block a rank (kernels/assembly/control-block.ts), and behind them:
 *
 *     0        abort: 0, or 1 + the local rank that the failure is about; then why (index in abortReasons)
 *     64       last words: their length (-1 while they are written), then why the first rank to fail did so
 *     1024     one line a rank: 1 once it has left the communicator, 2 once it does not look here any more; then how
 *              many calls it has made that wait for others elsewhere; then its report that it waits (wait-report.ts)
 *     …        u32 a pair of ranks: where the mailbox from the one to the other lies (0: nobody has written yet)
 *
 * The segment belongs to the ranks that started together, and a communicator to those of them that are in it: several
 * communicators have several teams on one segment. Local ranks here are places in the team.
 */
export const ABORT = 0;
export const LAST_WORDS = 64;
export const LEFT = 1024;
export const LINE = 128;
/** In a line. */
export const CALLS = 1;
export const REPORT = 2;

/** What a team of `nRanks` takes, where `blockBytes` is one control block. */
export function teamBytes(nRanks: number, blockBytes: number): number {
  return headerBytes(nRanks) + nRanks * blockBytes;
}

/** What lies behind the control blocks of a team. */
export function headerBytes(nRanks: number): number {
  return LEFT + nRanks * LINE + nRanks * nRanks * 4;
}
