import {
  type CallKind,
  kindKey,
  LEAST_MEASUREMENTS,
  type MeasuredKinds,
  measuredKinds,
  sizeClassOf,
} from '../../src/planner/simulate/measured-calls.js';
import { measuredPhysics, listPhysics, type Physics, type PhysicsName, withPhysics } from '../../src/planner/simulate/physics.js';
import { predictMeasured } from './fit-physics.js';
import { type MeasuredCall, PCIE } from './measured.js';

/** Measurements that a fit leaves out together: of a machine, of a fabric, or of a generation, everywhere or between hosts. */
export interface LeftOut {
  readonly by: 'machine' | 'fabric' | 'generation' | 'generation between hosts';
  readonly name: string;
}

/** Parameters of a fit without some measurements. */
export interface LeftOutFit {
  readonly left: LeftOut;
  readonly physics: Physics;
}

/** A measured call, and what a fit without it predicts. */
export interface LeftOutCall {
  readonly call: MeasuredCall;
  readonly left: LeftOut;
  readonly predictedUs: number;
  /** The kinds of calls that this fit had measurements of. */
  readonly kinds: MeasuredKinds;
}

/** True for a measurement that is left out. */
export function isLeftOut({ by, name }: LeftOut, { machine, fabric, generation, hosts }: MeasuredCall): boolean {
  switch (by) {
    case 'machine':
      return machine === name;
    case 'fabric':
      return fabric === name && hosts > 1;
    case 'generation':
      return generation === name;
    case 'generation between hosts':
      return generation === name && hosts > 1;
  }
}

/** All fits with something left out. @param calls those that fits use */
export function leftOuts(calls: readonly MeasuredCall[]): LeftOut[] {
  const between = calls.filter(({ hosts }) => hosts > 1);
  const names = (of: readonly string[]) => [...new Set(of)];
  return [
    ...names(calls.map(({ machine }) => machine)).map((name): LeftOut => ({ by: 'machine', name })),
    ...names(between.map(({ fabric }) => fabric)).map((name): LeftOut => ({ by: 'fabric', name })),
    ...names(calls.map(({ generation }) => generation)).map((name): LeftOut => ({ by: 'generation', name })),
    ...names(between.map(({ generation }) => generation)).map((name): LeftOut => ({ by: 'generation between hosts', name })),
  ];
}

/** Predictions of a fit for the trusted measurements that it left out. */
export function predictLeftOut({ left, physics }: LeftOutFit, calls: readonly MeasuredCall[]): LeftOutCall[] {
  const kinds = measuredKindsOf(calls.filter((call) => !isLeftOut(left, call)));
  return calls.flatMap((call): LeftOutCall[] => {
    const predictedUs = isLeftOut(left, call) ? predictMeasured(call, physics) : undefined;
    return predictedUs === undefined ? [] : [{ call, left, predictedUs, kinds }];
  });
}

/** The same of boxes of PCIe cards, which no fit uses, by the parameters in use. */
export function predictCards(calls: readonly MeasuredCall[]): LeftOutCall[] {
  return calls.flatMap((call): LeftOutCall[] => {
    const predictedUs = call.fabric === PCIE ? predictMeasured(call, measuredPhysics) : undefined;
    const left: LeftOut = { by: 'machine', name: call.machine };
    return predictedUs === undefined ? [] : [{ call, left, predictedUs, kinds: measuredKinds }];
  });
}

/** The kinds of calls that measurements are of, by the weight that they have in fits. */
export function measuredKindsOf(calls: readonly MeasuredCall[]): MeasuredKinds {
  const weights = new Map<string, number>();
  for (const call of calls) {
    const key = kindKey(callKind(call));
    weights.set(key, (weights.get(key) ?? 0) + call.weight);
  }
  return new Set([...weights].flatMap(([key, weight]) => (weight >= LEAST_MEASUREMENTS ? [key] : [])));
}

/** The kind of a measured call. */
export function callKind({ tuning, hosts, collective, bytes }: MeasuredCall): CallKind {
  return { compCap: tuning.input.minCompCap, isBetweenHosts: hosts > 1, collective, size: sizeClassOf(bytes) };
}

/** The fits as lines of JSON. */
export function leftOutText(fits: readonly LeftOutFit[]): string {
  return fits
    .map(({ left, physics }) => {
      const values = listPhysics(physics).map(({ name, value }) => [name, Number(value.toPrecision(4))]);
      return `${JSON.stringify({ ...left, physics: Object.fromEntries(values) as unknown })}\n`;
    })
    .join('');
}

/** The fits of {@link leftOutText}. */
export function readLeftOut(text: string): LeftOutFit[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const { physics, ...left } = JSON.parse(line) as LeftOut & { readonly physics: Partial<Record<PhysicsName, number>> };
      return { left, physics: withPhysics(measuredPhysics, physics) };
    });
}
