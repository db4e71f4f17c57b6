/**
 * Longest slice. With its headers it fits in one buffer of the kernel's TCP (64 KiB): the short rest of a longer one waits for
 * its turn, which halves the throughput between hosts. Shorter slices cost more hand-overs.
 */
export const LONGEST_SLICE_BYTES = 60 * 1024;
