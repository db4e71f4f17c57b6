import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nearestForms, parseQuestion, type Question, questionForms } from '../../../../../src/planner/plan/explain/question.js';

const MiB = 2 ** 20;
const choice = (rest: Partial<Extract<Question, { about: 'choice' }>>): Question => ({
  about: 'choice',
  collective: 'AllReduce',
  bytes: 128 * MiB,
  claimed: undefined,
  instead: undefined,
  ...rest,
});

describe('a question in free words', () => {
  it.each<[string, Question]>([
    ['why 24 channels', { about: 'channels', expected: 24 }],
    ['Why are there so many channels?', { about: 'channels', expected: undefined }],
    ['wy so many chanels', { about: 'channels', expected: undefined }],
    ['why this ring order', { about: 'rings', channel: undefined }],
    ['ring 3 order', { about: 'rings', channel: 3 }],
    ['why does GPU 3 use NIC 5', { about: 'nic', rank: 3, nic: 5 }],
    ['gpu 3 nic', { about: 'nic', rank: 3, nic: undefined }],
    ['who uses mlx5_2', { about: 'nic', rank: undefined, nic: 2 }],
    ['how are 0 and 5 connected', { about: 'connection', from: 0, to: 5 }],
    ['why SHM between gpu 1 and gpu 4?', { about: 'connection', from: 1, to: 4 }],
    ['why Tree at 4M', choice({ bytes: 4 * MiB, claimed: { algorithm: 'Tree' } })],
    [
      'why tree and not ring at 4 MiB for all_reduce',
      choice({ bytes: 4 * MiB, claimed: { algorithm: 'Tree' }, instead: { algorithm: 'Ring' } }),
    ],
    [
      'why not Ring LL128 at 1.5g for all-gather',
      choice({ collective: 'AllGather', bytes: 1.5 * 1024 * MiB, instead: { algorithm: 'Ring', protocol: 'LL128' } }),
    ],
    ['reduce scatter of 64 KiB', choice({ collective: 'ReduceScatter', bytes: 65_536 })],
    ['bcast 4194304 bytes', choice({ collective: 'Broadcast', bytes: 4 * MiB })],
    ['reduce at 8', choice({ collective: 'Reduce' })],
    ['how long does all_reduce of 64M take?', { about: 'time', collective: 'AllReduce', bytes: 64 * MiB }],
    ['all-to-all 1M', { about: 'time', collective: 'AllToAll', bytes: MiB }],
    ['alltoall', { about: 'time', collective: 'AllToAll', bytes: 128 * MiB }],
    ['sendrecv 2K', { about: 'time', collective: 'SendRecv', bytes: 2048 }],
    ['time of gather at 1M', { about: 'time', collective: 'Gather', bytes: MiB }],
    ['what does NCCL_CROSS_NIC do', { about: 'variable', variable: 'NCCL_CROSS_NIC' }],
    ['nccl_ib_timeout?', { about: 'variable', variable: 'NCCL_IB_TIMEOUT' }],
    ['which rails are crossed', { about: 'rails' }],
    ['do rings cross NICs', { about: 'rails' }],
    ['what limits send/recv', { about: 'limits', collective: 'SendRecv' }],
    ['why is alltoall slow at 4M', { about: 'limits', collective: 'AllToAll', bytes: 4 * MiB }],
    ['what limits all_gather', { about: 'limits', collective: 'AllGather' }],
    ['how many send/recv channels', { about: 'channels', expected: undefined, ofPairs: true }],
    ['why 4 p2p channels', { about: 'channels', expected: 4, ofPairs: true }],
    ['why no NVLS', { about: 'absence', collective: 'AllReduce', what: { algorithm: 'NVLS' } }],
    ['has nvswitch, but uses 0 nvls channels', { about: 'absence', collective: 'AllReduce', what: { algorithm: 'NVLS' } }],
    ['why is NVLink SHARP off', { about: 'absence', collective: 'AllReduce', what: { algorithm: 'NVLS' } }],
    ['why no NVLS tree for all_reduce', { about: 'absence', collective: 'AllReduce', what: { algorithm: 'NVLSTree' } }],
    ['why not LL128', { about: 'absence', collective: 'AllReduce', what: { protocol: 'LL128' } }],
    ['why no PAT', { about: 'absence', collective: 'AllGather', what: { algorithm: 'PAT' } }],
    ['why no GPU Direct', { about: 'gdr', rank: undefined }],
    ['gdr of rank 9', { about: 'gdr', rank: 9 }],
    ['why pxn', { about: 'pxn' }],
    ['flips', { about: 'flips', collective: undefined }],
    ['which size changes the choice for allgather', { about: 'flips', collective: 'AllGather' }],
    ['what limits', { about: 'limits' }],
    ['where is the bottleneck?', { about: 'limits' }],
    ['what would help', { about: 'help', collective: 'AllReduce', sizes: [4 * MiB, 128 * MiB, 1024 * MiB] }],
    ['what if anything makes all_gather 1G and 8K faster', { about: 'help', collective: 'AllGather', sizes: [1024 * MiB, 8192] }],
  ])('%s', (text, question) => {
    expect(parseQuestion(text)).toEqual(question);
  });

  it('is one of the listed questions', () => {
    for (const { about, example } of questionForms) expect(parseQuestion(example)?.about).toBe(about);
  });

  it('that matches none has suggestions', () => {
    expect(parseQuestion('banana')).toBeUndefined();
    expect(parseQuestion('')).toBeUndefined();
    expect(nearestForms('where is my NIC gone')[0]).toBe('why does GPU 3 use NIC 5');
    expect(nearestForms('banana')).toHaveLength(3);
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
          const question = parseQuestion(text);
          if (question?.about === 'choice') expect(Number.isSafeInteger(question.bytes) && question.bytes > 0).toBe(true);
          nearestForms(text);
        },
      ),
    );
  });
});
