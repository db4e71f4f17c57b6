import { counted } from '../../../counted.js';
import { formatBytes, formatTime, formatWay } from '../../plan/overview/format.js';
import { choose } from '../../tuning/choose.js';
import type { Collective } from '../../tuning/names.js';
import { describeKernelReason, describeNoSymmetric, windowsText } from '../../tuning/symmetric/reasons.js';
import { type CallWay, chooseWithWindows, type KernelPrediction, predictKernels } from '../../tuning/symmetric/symmetric.js';
import type { Tuning } from '../../tuning/tune.js';
import type { Draft } from '../answer.js';
import { rate } from '../format.js';
import { predicted, type Situation } from '../situation.js';

/** An answer about a call on windows, or a remark beside the choice of a general kernel. */
export type WindowsAnswer = { readonly answer: Draft } | { readonly remark: string };

/** Explains what does a call whose buffers lie in symmetric windows. */
export function answerWithWindows(situation: Situation, collective: Collective, bytes: number): WindowsAnswer {
  const { tuning } = situation;
  const way = chooseWithWindows(tuning, collective, bytes);
  const { windows } = tuning.input.symmetric;
  if (way.kind === 'general')
    return { remark: `Symmetric windows for ${windowsText(windows)} change nothing here. ${describeNoSymmetric(way.because)}` };
  const all = predictKernels(tuning, collective, bytes);
  const simulated = predicted(situation, collective, bytes);
  return {
    answer: {
      title: `${wayName(way)} for ${collective} of ${formatBytes(bytes)}`,
      sentences: [
        ...(way.kind === 'symmetric'
          ? kernelSentences(way, collective, bytes, all)
          : copyEngineSentences(way, collective, bytes)),
        ...(simulated === undefined
          ? []
          : [`By the simulation it takes ${formatTime(simulated.timeUs)}, ${rate(simulated.busGBps)}.`]),
        ...withoutWindows(tuning, collective, bytes),
        'These decisions are read from source; they were never compared with recorded answers of NCCL.',
      ],
      evidence: {
        collective,
        bytes,
        windows,
        chosen: { kernel: wayName(way), timeUs: way.timeUs, ctas: way.kind === 'symmetric' ? way.ctas : 0 },
        predictedUs: simulated?.timeUs ?? null,
        candidates: all.flatMap(({ kernel, timeUs, ctas }) =>
          timeUs === null || ctas === null ? [] : [{ kernel, timeUs, ctas }],
        ),
        excluded: all
          .filter(({ timeUs }) => timeUs === null)
          .map(({ kernel, reasons }) => ({ kernel, because: reasons.map(({ why }) => why) })),
      },
    },
  };
}

function wayName(way: Exclude<CallWay, { kind: 'general' }>): string {
  return way.kind === 'symmetric' ? way.kernel : 'copy engines';
}

function kernelSentences(
  way: Extract<CallWay, { kind: 'symmetric' }>,
  collective: Collective,
  bytes: number,
  all: readonly KernelPrediction[],
): string[] {
  const others = all.flatMap(({ kernel, timeUs, ctas }) =>
    timeUs === null || ctas === null || kernel === way.kernel ? [] : [{ kernel, timeUs, ctas }],
  );
  return [
    `NCCL does ${collective} of ${formatBytes(bytes)} with the symmetric kernel ${way.kernel} on ${counted(way.ctas, 'CTA')}: its model expects ${formatTime(way.timeUs)}, ${rate(way.busGBps)} of bus bandwidth.`,
    others.length === 0
      ? 'No other symmetric kernel can do the call.'
      : `Each CTA counts as 2.5 % more time, so that it wins over ${others.map(({ kernel, timeUs, ctas }) => `${kernel} (${formatTime(timeUs)} on ${ctas})`).join(', ')}.`,
    ...all.flatMap(({ kernel, reasons: [reason] }) =>
      reason === undefined ? [] : [`Not ${kernel}: ${describeKernelReason(reason)}`],
    ),
  ];
}

function copyEngineSentences(way: Extract<CallWay, { kind: 'copy engines' }>, collective: Collective, bytes: number): string[] {
  return [
    `NCCL does ${collective} of ${formatBytes(bytes)} with the copy engines of the GPUs, on no CTA: the model that NCCL has for them since 2.31.2, but does not choose by, expects ${formatTime(way.timeUs)}, ${rate(way.busGBps)} of bus bandwidth.`,
  ];
}

function withoutWindows(tuning: Tuning, collective: Collective, bytes: number): string[] {
  const choice = choose(tuning, collective, bytes);
  if (choice === undefined) return [];
  return [
    `Without windows it would be ${formatWay(choice)} on ${counted(choice.nChannels, 'CTA')}, of which its model expects ${formatTime(choice.timeUs)}.`,
  ];
}
