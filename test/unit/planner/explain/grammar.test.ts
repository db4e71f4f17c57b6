import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completeQuestion, nearestQuestions, questionForms } from '../../../../src/planner/explain/grammar/complete.js';
import { parseQuestions } from '../../../../src/planner/explain/grammar/parse.js';
import type { Question } from '../../../../src/planner/explain/grammar/question.js';

const KiB = 2 ** 10;
const MiB = 2 ** 20;
const GiB = 2 ** 30;

describe('a question in free words', () => {
  it.each<[string, Partial<Question>]>([
    ['why 24 channels', { asks: 'channels', count: 24 }],
    ['Why are there so many channels?', { asks: 'channels', count: undefined }],
    ['wy so many chanels', { asks: 'channels' }],
    ['why this ring order', { asks: 'rings', channel: undefined }],
    ['ring 3 order', { asks: 'rings', channel: 3 }],
    ['why does GPU 3 use NIC 5', { asks: 'nic', ranks: [3], nic: 5 }],
    ['gpu 3 nic', { asks: 'nic', ranks: [3], nic: undefined }],
    ['who uses mlx5_2', { asks: 'nic', ranks: [], nic: 2 }],
    ['how are 0 and 5 connected', { asks: 'connection', ranks: [0, 5] }],
    ['why SHM between gpu 1 and gpu 4?', { asks: 'connection', ranks: [1, 4] }],
    ['why Tree at 4M', { asks: 'choice', sizes: [4 * MiB], ways: [{ algorithm: 'Tree' }] }],
    [
      'why tree and not ring at 4 MiB for all_reduce',
      { asks: 'choice', collective: 'AllReduce', sizes: [4 * MiB], ways: [{ algorithm: 'Tree' }, { algorithm: 'Ring' }] },
    ],
    [
      'why not Ring LL128 at 1.5g for all-gather',
      {
        asks: 'choice',
        collective: 'AllGather',
        sizes: [1.5 * GiB],
        ways: [{ algorithm: 'Ring', protocol: 'LL128' }],
        isNegated: true,
      },
    ],
    ['reduce scatter of 64 KiB', { asks: 'choice', collective: 'ReduceScatter', sizes: [64 * KiB] }],
    ['bcast 4194304 bytes', { asks: 'choice', collective: 'Broadcast', sizes: [4 * MiB] }],
    ['how long does all_reduce of 64M take?', { asks: 'time', collective: 'AllReduce', sizes: [64 * MiB] }],
    ['all-to-all 1M', { collective: 'AllToAll', sizes: [MiB] }],
    ['sendrecv 2K', { collective: 'SendRecv', sizes: [2048] }],
    ['time of gather at 1M', { asks: 'time', collective: 'Gather', sizes: [MiB] }],
    ['what does NCCL_CROSS_NIC do', { asks: 'variable', variables: [{ name: 'NCCL_CROSS_NIC', value: undefined }] }],
    ['nccl_ib_timeout?', { asks: 'variable', variables: [{ name: 'NCCL_IB_TIMEOUT', value: undefined }] }],
    ['which rails are crossed', { asks: 'rails' }],
    ['do rings cross NICs', { asks: 'rails' }],
    ['what limits send/recv', { asks: 'limits', collective: 'SendRecv' }],
    ['why is alltoall slow at 4M', { asks: 'limits', collective: 'AllToAll', sizes: [4 * MiB] }],
    ['what limits all_gather', { asks: 'limits', collective: 'AllGather' }],
    ['how many send/recv channels', { asks: 'channels', collective: 'SendRecv' }],
    ['why 4 p2p channels', { asks: 'channels', count: 4, collective: 'SendRecv' }],
    ['why no NVLS', { asks: 'use', isNegated: true, ways: [{ algorithm: 'NVLS' }] }],
    ['has nvswitch, but uses 0 nvls channels', { asks: 'use', ways: [{ algorithm: 'NVLS' }] }],
    ['why is NVLink SHARP off', { asks: 'use', ways: [{ algorithm: 'NVLS' }] }],
    ['why not LL128', { asks: 'use', ways: [{ protocol: 'LL128' }] }],
    ['why no PAT', { asks: 'use', collective: 'AllGather', ways: [{ algorithm: 'PAT' }] }],
    ['why no GPU Direct', { asks: 'gdr', ranks: [] }],
    ['gdr of rank 9', { asks: 'gdr', ranks: [9] }],
    ['why pxn', { asks: 'pxn' }],
    ['flips', { asks: 'flips', collective: undefined }],
    ['which size changes the choice for allgather', { asks: 'flips', collective: 'AllGather' }],
    ['where is the bottleneck?', { asks: 'limits' }],
    ['what would help', { asks: 'help', collective: undefined, sizes: [] }],
    ['what if anything makes all_gather 1G and 8K faster', { asks: 'help', collective: 'AllGather', sizes: [GiB, 8 * KiB] }],
  ])('%s', (text, question) => {
    expect(parseQuestions(text)[0]).toMatchObject(question);
  });

  it.each<[string, Question['measured'], readonly number[]]>([
    ['why is alltoall only 47 GB/s', { kind: 'bandwidth', value: 47 }, []],
    ['is 47GB/s busbw at 1GB good', { kind: 'busbw', value: 47 }, [GiB]],
    ['400 Gbps of all_reduce, is it ok?', { kind: 'bandwidth', value: 50 }, []],
    ['only 3.2 GiB/s allreduce, why', { kind: 'bandwidth', value: (3.2 * GiB) / 1e9 }, []],
    ['is 1.2 TB/s plausible for all_reduce', { kind: 'bandwidth', value: 1200 }, []],
    ['is 850 us good for all_gather of 64 MiB', { kind: 'time', value: 850 }, [64 * MiB]],
    ['algbw is 90 GB/s for 8G all_reduce, normal?', { kind: 'algbw', value: 90 }, [8 * GiB]],
  ])('%s: a rate is no size', (text, measured, sizes) => {
    const [question] = parseQuestions(text);
    expect(question).toMatchObject({ asks: 'judge', sizes });
    expect(question?.measured?.kind).toBe(measured?.kind);
    expect(question?.measured?.value).toBeCloseTo(measured?.value ?? 0);
  });

  it.each<[string, Question['changes']]>([
    ['what if one NIC is down', [{ kind: 'nics-down', count: 1 }]],
    ['what if one NIC runs at PCIe x8', [{ kind: 'pcie-lanes', lanes: 8, isOneNic: true }]],
    ['what if one NIC flaps', [{ kind: 'nics-down', count: 1 }]],
    ['what if one NIC runs at 200G', [{ kind: 'nic-speed', mbps: 200_000, isOneNic: true }]],
    ['what if one NIC is 200 Gb/s', [{ kind: 'nic-speed', mbps: 200_000, isOneNic: true }]],
    ['what if the link of mlx5_3 is PCIe Gen4', [{ kind: 'pcie', generation: 4, isOneNic: true }]],
    ['what if the NICs are 200 Gb/s', [{ kind: 'nic-speed', mbps: 200_000 }]],
    ['what if mlx5_3 fails', [{ kind: 'nics-down', count: 1 }]],
    ['what if two of the 8 NICs are down', [{ kind: 'nics-down', count: 2 }]],
    ['with NCCL_ALGO=Ring', [{ kind: 'variable', name: 'NCCL_ALGO', value: 'Ring' }]],
    ["what if I set NCCL_P2P_LEVEL to 'SYS'", [{ kind: 'variable', name: 'NCCL_P2P_LEVEL', value: 'SYS' }]],
    ['what if I unset NCCL_ALGO', [{ kind: 'variable', name: 'NCCL_ALGO', value: null }]],
    ['what if we upgrade to 400G NICs?', [{ kind: 'nic-speed', mbps: 400_000 }]],
    ['what if the fabric is oversubscribed 3:1', [{ kind: 'oversubscription', ratio: 3 }]],
    ['what if PXN is disabled', [{ kind: 'variable', name: 'NCCL_PXN_DISABLE', value: '1' }]],
    [
      'what happens with NVLS turned off and one NIC down',
      [
        { kind: 'nics-down', count: 1 },
        { kind: 'variable', name: 'NCCL_NVLS_ENABLE', value: '0' },
      ],
    ],
    ['what if we go to 64 nodes', [{ kind: 'nodes', count: 64 }]],
  ])('%s: is a change that is tried', (text, changes) => {
    expect(parseQuestions(text)[0]).toMatchObject({ asks: 'change', changes });
  });

  it('may be several, of which a later one is about the call of an earlier one', () => {
    const questions = parseQuestions('Is 365 GB/s good for all_gather at 1G, and how do I improve it?');
    expect(questions).toMatchObject([
      { asks: 'judge', collective: 'AllGather', sizes: [GiB] },
      { asks: 'help', collective: 'AllGather', sizes: [GiB] },
    ]);
  });

  it('is one of the listed questions', () => {
    for (const { asks, example } of questionForms) expect([example, parseQuestions(example)[0]?.asks]).toEqual([example, asks]);
  });

  it.each([
    'banana',
    '',
    '   ',
    'what is the capital of France',
    'warum so langsam zwischen den Knoten',
    '为什么 allreduce 只有 47 GB/s',
  ])("'%s' has suggestions in place of an answer", (text) => {
    expect(parseQuestions(text)).toEqual([]);
    expect(new Set(nearestQuestions(text)).size).toBe(3);
  });

  it('has the nearest suggestions first', () => {
    expect(nearestQuestions('where is my NIC gone')[0]).toMatch(/NIC/);
    expect(nearestQuestions('the NVLS of the moon')[0]).toMatch(/NVLS/);
  });

  it('never throws, and has valid sizes', () => {
    const words = fc.array(
      fc.constantFrom(
        'why',
        'no',
        'tree',
        'ring',
        'll',
        'gpu',
        'nic',
        '3',
        '4M',
        '9e99',
        '1.5G',
        '0K',
        'at',
        'channels',
        '->',
        '🙂',
        'all_reduce',
        'between',
        '99999999999999999999',
      ),
      { maxLength: 9 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          words.map((list) => list.join(' ')),
        ),
        (text) => {
          for (const { sizes } of parseQuestions(text))
            for (const bytes of sizes) expect(Number.isSafeInteger(bytes) && bytes > 0).toBe(true);
          expect(nearestQuestions(text)).toHaveLength(3);
          completeQuestion(text);
        },
      ),
    );
  });
});

describe('completion', () => {
  it('goes on with examples, names of calls and variables', () => {
    const texts = (text: string) => completeQuestion(text).map((each) => each.text);
    expect(texts('what if one')).toContain('what if one NIC is down');
    expect(texts('what if NCCL_CROSS')).toContain('what if NCCL_CROSS_NIC');
    expect(texts('why is all')).toEqual(expect.arrayContaining(['why is all_reduce', 'why is alltoall']));
    expect(texts('why NVLS')).toContain('why NVLSTree');
    expect(completeQuestion('').length).toBe(questionForms.length);
    for (const { kind, detail } of completeQuestion('NCCL_M')) expect([kind, detail.length > 0]).toEqual(['variable', true]);
  });
});
