import type { Profile } from './profile.js';

/** What the algorithms took on one machine, for predictions where `tccl tune` was never run. Made by scripts/default-profile.mjs. */
export const defaultProfile: Profile = {
  format: 'tccl profile',
  formatVersion: 1,
  machine: 'AMD EPYC, 2 cores',
  cores: 2,
  times: {
    2: {
      allReduce: {
        direct: [[8, 0.3]],
      },
    },
  },
};
