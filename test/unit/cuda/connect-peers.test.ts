import { expect, it } from 'vitest';
import { agreedPlan, connectPeers } from '../../../src/cuda/connect-peers.js';

it.each([
  [{ nRanks: 65, nNodes: 1 }, 'there are 65 ranks, and kernels combine the data of 64'],
  [{ nRanks: 4, nNodes: 2 }, 'the ranks are on 2 hosts'],
])('data go through the host where %o', async (comm, reason) => {
  const plan = await agreedPlan(comm as never, []);
  const connected = await connectPeers(comm as never, undefined as never, 0n, true, plan, () => undefined);
  expect(connected).toEqual({ peers: undefined, transport: { name: 'host', reason } });
});
