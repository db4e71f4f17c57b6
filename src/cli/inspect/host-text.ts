import type { Job } from './job.js';

/** The way between the ranks of a job. */
export function networkText({ shared, hosts, nRanks }: Job): string {
  if (nRanks === 1) return 'one rank';
  if (hosts.length === 1) return shared ? 'shared memory' : 'no shared memory';
  return shared ? 'shared memory within hosts, a network between them' : 'a network';
}
