import { expect, test } from 'vitest';
import { fixture, start } from './cli.js';
import { runRanks } from './ranks.js';

test.each([
  ['that share memory', {}],
  ['on engine threads', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
  ['over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
])("the stack of a promise call's error leads to where it is awaited: ranks %s", async (_, env) => {
  const { records, stderr } = await runRanks(2, 'caller-stack.mjs', [], { env });
  const ofCall = (place: string, ...functions: string[]): object => ({
    place,
    code: place === 'begin' ? 'RANK_MISSING' : 'ABORTED',
    functions: [...functions, 'top'],
    says: true,
  });
  const byPlace = (a: object, b: object): number => JSON.stringify(a).localeCompare(JSON.stringify(b));
  expect([...records].sort(byPlace), stderr).toEqual([
    ofCall('all', 'all'),
    ofCall('begin', 'begin'),
    ofCall('divide', 'divide'),
    ofCall('exchange', 'exchange'),
    ofCall('later', 'later'),
    ofCall('step', 'step', 'epoch'),
    ofCall('together', 'together'),
  ]);
});

test.each([
  ['that share memory', {}],
  ['on engine threads', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
  ['over sockets, in place', { TCCL_SHM_DISABLE: '1' }],
])('the stack of an error has the program that calls and nothing of tccl, in both forms of a call: ranks %s', async (_, env) => {
  const { records, stderr } = await runRanks(2, 'caller-lines.mjs', [], { env });
  const codes = {
    operator: 'UNKNOWN_NAME',
    operatorInPlace: 'UNKNOWN_NAME',
    operatorInGroup: 'UNKNOWN_NAME',
    length: 'BUFFER_SIZE',
    lengthInPlace: 'BUFFER_SIZE',
    peer: 'ARGUMENT_RANGE',
    peerInPlace: 'ARGUMENT_RANGE',
    root: 'ROOT_RANGE',
    color: 'ARGUMENT_RANGE',
    window: 'ARGUMENT_RANGE',
    windowInPlace: 'ARGUMENT_RANGE',
    freed: 'ARGUMENT_TYPE',
    explained: 'UNKNOWN_NAME',
    idOption: 'UNKNOWN_NAME',
    idAddress: 'NETWORK',
    put: 'CLOSED',
    flush: 'CLOSED',
    mismatch: 'CALL_MISMATCH',
    mismatchInPlace: 'CALL_MISMATCH',
    mismatchInTraining: 'CALL_MISMATCH',
    late: 'TIMEOUT',
    lateInPlace: 'TIMEOUT',
    message: 'TIMEOUT',
    messageInPlace: 'TIMEOUT',
    messageInGroup: 'TIMEOUT',
    signal: 'CLOSED',
    signalInPlace: 'CLOSED',
  };
  expect(records, stderr).toEqual(Object.entries(codes).map(([name, code]) => ({ name, code, first: 'the caller' })));
});

test('the stack of an error of refused arguments begins with the program that starts ranks or joins them', async () => {
  const { stdout, stderr } = await start(process.execPath, [fixture('refused-arguments.mjs')]).finished;
  const codes = {
    poolOption: 'UNKNOWN_NAME',
    poolRanks: 'ARGUMENT_RANGE',
    poolModule: 'FILE',
    poolArguments: 'ARGUMENT_TYPE',
    spawnRanksOf: 'ARGUMENT_RANGE',
    spawnModule: 'FILE',
    spawnOption: 'UNKNOWN_NAME',
    initOption: 'UNKNOWN_NAME',
    initNothing: 'ARGUMENT_TYPE',
    initRank: 'ARGUMENT_RANGE',
  };
  const lines = stdout.trim().split('\n');
  expect(
    lines.map((line) => JSON.parse(line) as object),
    stderr,
  ).toEqual(Object.entries(codes).map(([name, code]) => ({ name, code, first: 'the caller' })));
});
