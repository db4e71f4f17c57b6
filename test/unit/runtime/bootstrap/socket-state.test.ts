import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { readStates, tableOfStates } from '../../../../src/runtime/bootstrap/socket-state.js';

test.skipIf(process.platform !== 'linux')('the state of a connection is what the table of the kernel says', async () => {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sender = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [receiver] = (await once(server, 'connection')) as [Socket];
  const inTable = () => tableOfStates().get(`${sender.localPort} ${sender.remotePort}`);
  await vi.waitFor(() => expect(readStates()(sender)).toEqual(inTable()));
  expect(readStates()(sender)).toEqual({ unconfirmedBytes: 0, retransmits: 0, unansweredProbes: 0 });

  // Nobody reads, so the buffers of both sides become full.
  sender.write(new Uint8Array(64 << 20));
  await vi.waitFor(() => {
    const state = readStates()(sender);
    expect(state?.unconfirmedBytes).toBeGreaterThan(0);
    expect(state).toEqual(inTable());
  });
  sender.destroy();
  receiver.destroy();
  server.close();
  expect(readStates()(sender)).toBeUndefined();
});
