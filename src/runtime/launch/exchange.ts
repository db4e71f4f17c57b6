import { InvalidUsageError } from '../../errors.js';
import { value, wholeNumber, type Environment } from './environment.js';
import { passThroughPmi } from './pmi.js';
import type { WaitOptions, Placement } from './placement.js';
import { isPrivate, passThroughDirectory } from './session-directory.js';
import { slurmAddress } from './slurm.js';

/**
 * Passes a text from rank 0 to all ranks through their launcher, so that they can meet without a given address: through the
 * key-value store of MPICH's launcher (any number of hosts), or through a file in the private directory that Open MPI and
 * PRRTE create for each job (one host). All ranks call it equally often. Slurm's variables give an address instead.
 *
 * @param make called on rank 0 only
 * @throws InvalidUsageError `RANK_UNKNOWN` when the launcher has no such means, with the variable to set; TimeoutError
 *   `RANK_MISSING` when other ranks do not arrive in time
 */
export async function passThroughLauncher(
  place: Placement,
  env: Environment,
  make: () => Promise<string>,
  options: WaitOptions,
): Promise<string> {
  const pmi = wholeNumber(env['PMI_FD']);
  if (place.launcher === 'mpich' && pmi !== undefined) return passThroughPmi(pmi, place, make, options);

  const directory = value(env, 'PMIX_SERVER_TMPDIR');
  const job = value(env, 'PMIX_NAMESPACE');
  if (directory !== undefined && job !== undefined && place.nLocalRanks === place.nRanks && isPrivate(directory)) {
    return passThroughDirectory(directory, job, place, make, options);
  }
  if (place.launcher === 'slurm') {
    const address = slurmAddress(env);
    if (address !== undefined) return address;
  }
  const setting = 'TCCL_COMM_ID=HOST:PORT with the host of rank 0 and a free port there';
  throw new InvalidUsageError(
    'RANK_UNKNOWN',
    `${place.launcher} started rank ${place.rank} of ${place.nRanks} but does not say where the ranks meet: ` +
      // mpirun passes a variable to other hosts only with -x.
      (place.launcher === 'openmpi' ? `start them with mpirun -x ${setting}` : `before you start them, export ${setting}`),
    { rank: place.rank },
  );
}
