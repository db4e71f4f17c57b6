import { InternalError } from '../../../errors.js';
import type { Network } from '../network.js';
import { hasRdmaModule, hasRdmaPort } from './hardware.js';
import { loadUcx } from './library.js';
import { UcxTransport } from './ucx.js';
import { workerHere } from './worker.js';

/** UCX, which is preferred where it can use RDMA. */
export const ucxNetwork: Network = {
  name: 'ucx',
  logName: 'NET/UCX',
  choosesNics: true,
  refusal() {
    const loaded = loadUcx();
    return 'reason' in loaded ? loaded.reason : undefined;
  },
  doubt() {
    if (!hasRdmaPort()) return 'no active RDMA port';
    const loaded = loadUcx();
    if ('reason' in loaded) return loaded.reason;
    return hasRdmaModule() ? undefined : `UCX ${loaded.ucx.version} has no module for RDMA (libuct_ib)`;
  },
  version() {
    const loaded = loadUcx();
    return 'ucx' in loaded ? loaded.ucx.version : undefined;
  },
  open({ libc, ...options }) {
    const loaded = loadUcx();
    if (!('ucx' in loaded) || libc === undefined) throw new InternalError('INTERNAL', 'UCX was chosen, but is not here');
    return new UcxTransport({ ...options, libc, worker: () => workerHere(loaded.ucx) });
  },
};
