import { type Generation, generations } from '../tuning/constants.js';

/**
 * Physical parameters of machines that `npm run calibrate` fits, within plausible ranges. They hold for a generation of GPUs or
 * for all machines, never for one machine.
 */
export interface PhysicsParameter {
  readonly unit: 'us' | 'GB/s' | 'ratio';
  readonly least: number;
  readonly most: number;
  readonly meaning: string;
}

/** Parameters with a value for each generation. */
export const generationParameters = {
  launchUs: { unit: 'us', least: 2, most: 15, meaning: 'a kernel that starts and ends, calls queued back to back' },
  llHopUs: { unit: 'us', least: 0.3, most: 3, meaning: 'LL: flags written over NVLink and seen by the next GPU' },
  ll128HopUs: { unit: 'us', least: 0.3, most: 6, meaning: 'LL128: the same, 128 bytes at a time' },
  simpleHopUs: {
    unit: 'us',
    least: 0.1,
    most: 8,
    meaning: 'Simple: counter written behind a fence over NVLink and seen by the next GPU',
  },
  simpleSliceUs: { unit: 'us', least: 0.2, most: 8, meaning: 'Simple: barriers and fence of a slice in a thread block' },
  llBlockGBps: { unit: 'GB/s', least: 1, most: 15, meaning: 'LL: data that a thread block moves' },
  ll128BlockGBps: { unit: 'GB/s', least: 4, most: 45, meaning: 'LL128: data that a thread block moves' },
  copyBlockGBps: { unit: 'GB/s', least: 8, most: 80, meaning: 'Simple: data that a thread block copies within its GPU' },
  pairsBlockGBps: { unit: 'GB/s', least: 5, most: 60, meaning: 'send and receive: data that a thread block sends' },
} as const satisfies Record<string, PhysicsParameter>;

/** Parameters that are the same for all. */
export const commonParameters = {
  nvlinkPayload: {
    unit: 'ratio',
    least: 0.75,
    most: 0.95,
    meaning: 'payload of an NVLink by what its wires carry: packets have headers',
  },
  pciPayload: { unit: 'ratio', least: 0.7, most: 1.3, meaning: 'payload of a PCI link by what NCCL counts for it' },
  netPayload: {
    unit: 'ratio',
    least: 0.97,
    most: 0.995,
    meaning: 'payload of a NIC by its line rate: packets of 4 KiB have headers of 26 (InfiniBand) to 98 bytes (RoCE)',
  },
  operandCost: {
    unit: 'ratio',
    least: 0,
    most: 0.5,
    meaning: 'what each source or destination of a move beyond the first two costs, by a copy',
  },
  flagShare: {
    unit: 'ratio',
    least: 0,
    most: 1,
    meaning: 'LL, LL128: the part of a hop in which the thread block can do nothing else',
  },
  llThreadCost: { unit: 'ratio', least: 0, most: 1, meaning: 'LL: what 512 threads a block make a hop longer, by a hop of none' },
  pairsSliceRatio: {
    unit: 'ratio',
    least: 0.2,
    most: 2,
    meaning: 'send and receive: barriers and fence of a slice, by those of collectives',
  },
  nvlsBlockGBps: { unit: 'GB/s', least: 8, most: 40, meaning: 'NVLink SHARP: data that the warps of a block scatter or gather' },
  nvlsHopUs: { unit: 'us', least: 0.5, most: 10, meaning: 'NVLink SHARP: counter through the NVSwitch' },
  nvlsSliceUs: { unit: 'us', least: 0.2, most: 8, meaning: 'NVLink SHARP: barriers and fence of a slice' },
  nvlsSetupUs: { unit: 'us', least: 0, most: 20, meaning: 'NVLink SHARP: what a kernel needs to begin with, beyond others' },
  pairsSetupUs: { unit: 'us', least: -4, most: 6, meaning: 'send and receive: what a kernel needs to begin with, beyond others' },
  shmHopUs: { unit: 'us', least: 0.5, most: 8, meaning: 'a hop through memory of the host, beyond one over NVLink' },
  processesUs: { unit: 'us', least: 0, most: 30, meaning: 'one process a GPU: what launches that are not at the same time cost' },
  netStepUs: { unit: 'us', least: 0, most: 0.15, meaning: 'what a NIC needs for each message besides its bytes' },
  netSendUs: {
    unit: 'us',
    least: 0,
    most: 4,
    meaning: 'Simple: a fence that reaches memory of the host, and a message to the proxy about each slice',
  },
  netHopUs: { unit: 'us', least: 2, most: 30, meaning: 'a hop over the network: two proxies, NIC, wire' },
} as const satisfies Record<string, PhysicsParameter>;

export type GenerationParameter = keyof typeof generationParameters;
export type CommonParameter = keyof typeof commonParameters;

/** A value for each parameter. */
export interface Physics {
  readonly of: Readonly<Record<Generation, Readonly<Record<GenerationParameter, number>>>>;
  readonly common: Readonly<Record<CommonParameter, number>>;
}

/** A name of one value: `launchUs.hopper`, `nvlinkPayload`. */
export type PhysicsName = `${GenerationParameter}.${Generation}` | CommonParameter;

/** Name, value and range of all values. */
export function listPhysics(
  physics: Physics,
): { readonly name: PhysicsName; readonly value: number; readonly parameter: PhysicsParameter }[] {
  const own = (Object.keys(generationParameters) as GenerationParameter[]).flatMap((name) =>
    generations.map((generation) => ({
      name: `${name}.${generation}` as const,
      value: physics.of[generation][name],
      parameter: generationParameters[name],
    })),
  );
  const common = (Object.keys(commonParameters) as CommonParameter[]).map((name) => ({
    name,
    value: physics.common[name],
    parameter: commonParameters[name],
  }));
  return [...own, ...common];
}

/** The same physics with other values. */
export function withPhysics(physics: Physics, changes: Partial<Record<PhysicsName, number>>): Physics {
  const of = Object.fromEntries(
    generations.map((generation) => [
      generation,
      Object.fromEntries(
        (Object.keys(generationParameters) as GenerationParameter[]).map((name) => [
          name,
          changes[`${name}.${generation}`] ?? physics.of[generation][name],
        ]),
      ),
    ]),
  ) as Physics['of'];
  const common = Object.fromEntries(
    (Object.keys(commonParameters) as CommonParameter[]).map((name) => [name, changes[name] ?? physics.common[name]]),
  ) as Physics['common'];
  return { of, common };
}

const ampere = {
  launchUs: 8.25,
  llHopUs: 0.876,
  ll128HopUs: 5.07,
  simpleHopUs: 0.101,
  simpleSliceUs: 5.3,
  llBlockGBps: 7.21,
  ll128BlockGBps: 22.4,
  copyBlockGBps: 20.3,
  pairsBlockGBps: 12.5,
};

/** Result of `npm run calibrate`, rounded. There are no measurements of Volta: it has Ampere's values. */
export const measuredPhysics: Physics = {
  of: {
    volta: ampere,
    ampere,
    hopper: {
      launchUs: 4.41,
      llHopUs: 0.734,
      ll128HopUs: 3.75,
      simpleHopUs: 0.1,
      simpleSliceUs: 2.6,
      llBlockGBps: 11.6,
      ll128BlockGBps: 22.9,
      copyBlockGBps: 32.6,
      pairsBlockGBps: 21.3,
    },
    blackwell: {
      launchUs: 6.86,
      llHopUs: 1.22,
      ll128HopUs: 3.95,
      simpleHopUs: 0.1,
      simpleSliceUs: 3.19,
      llBlockGBps: 10.2,
      ll128BlockGBps: 22.6,
      copyBlockGBps: 34.2,
      pairsBlockGBps: 23.6,
    },
  },
  common: {
    nvlinkPayload: 0.832,
    pciPayload: 1.15,
    netPayload: 0.979,
    operandCost: 0.0654,
    flagShare: 0.707,
    llThreadCost: 0.269,
    pairsSliceRatio: 0.764,
    nvlsBlockGBps: 17.3,
    nvlsHopUs: 3.82,
    nvlsSliceUs: 3.8,
    nvlsSetupUs: 6.82,
    pairsSetupUs: 1.33,
    shmHopUs: 2,
    processesUs: 12.5,
    netStepUs: 0.107,
    netSendUs: 1.88,
    netHopUs: 8.34,
  },
};
