/** TCCL_TEST_NODE: the Node that processes of the tests run under, in place of the one that runs vitest. */
const node = process.env['TCCL_TEST_NODE'];
if (node !== undefined) process.execPath = node;
