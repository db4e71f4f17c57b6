import type { Draft } from '../answer.js';
import type { Measured } from '../grammar/question.js';

/** Refuses to judge figures that may be of another program or call, and says how to ask. */
export function answerUnclear(measured: Measured | undefined): Draft {
  return {
    title: 'I cannot tell: these figures may be of another program, or of another call than a collective',
    sentences: [
      'Copies, RDMA tests, steps of a training and memory have rates of their own. Plans say what a collective of NCCL reaches, and a figure is judged only where its call is named.',
      'This would tell: name the call with its figure, as is 200 GB/s good for all_reduce of 1 GiB; or give the table of nccl-tests to tccl expect.',
      'A rate of the network itself is part of the machine: say 8 NICs of 400 Gb/s, and ask what busbw to expect.',
    ],
    evidence: { measured: measured === undefined ? null : { kind: measured.kind, value: measured.value } },
  };
}
