import { expect, test } from 'vitest';
import { init } from '../../../src/communicator/init.js';

const place = { TCCL_RANK: '0', TCCL_NRANKS: '2' };

test.each([
  ['localhost', 'TCCL_COMM_ID: "localhost" is not an address: write IPV4:PORT'],
  ['tccl1:cut', 'TCCL_COMM_ID: the unique id'],
])('an id in a variable that means nothing is named with the variable: %s', async (id, message) => {
  await expect(init({ env: { ...place, TCCL_COMM_ID: id } })).rejects.toMatchObject({ code: 'UNIQUE_ID', message: expect.stringContaining(message) as string });
});

test('an id that the program gave is not', async () => {
  await expect(init({ rank: 0, nRanks: 2, commId: 'localhost', env: { TCCL_COMM_ID: 'localhost' } })).rejects.toThrow(/^"localhost" is not an address/);
});
