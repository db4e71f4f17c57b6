import { type Generation, generations } from '../tuning/constants.js';

/**
 * Physical parameters of machines that `npm run calibrate` fits. They hold for
 * a generation of GPUs or for all machines, never for one machine. Ranges are what is plausible; the fit stays within.
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
  netPayload: { unit: 'ratio', least: 0.7, most: 1, meaning: 'payload of a NIC by its line rate' },
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
  netStepUs: { unit: 'us', least: 0, most: 3, meaning: 'what a proxy and its NIC need for each slice before the next' },
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
  launchUs: 8.28,
  llHopUs: 0.872,
  ll128HopUs: 4.99,
  simpleHopUs: 0.101,
  simpleSliceUs: 5.42,
  llBlockGBps: 7.35,
  ll128BlockGBps: 21.8,
  copyBlockGBps: 23.4,
  pairsBlockGBps: 12.6,
};

/** Result of `npm run calibrate`, rounded. There are no measurements of Volta: it has Ampere's values. */
export const measuredPhysics: Physics = {
  of: {
    volta: ampere,
    ampere,
    hopper: {
      launchUs: 4.37,
      llHopUs: 0.739,
      ll128HopUs: 3.67,
      simpleHopUs: 0.1,
      simpleSliceUs: 2.7,
      llBlockGBps: 11.8,
      ll128BlockGBps: 22.1,
      copyBlockGBps: 36.2,
      pairsBlockGBps: 19.9,
    },
    blackwell: {
      launchUs: 6.88,
      llHopUs: 1.21,
      ll128HopUs: 3.87,
      simpleHopUs: 0.1,
      simpleSliceUs: 3.18,
      llBlockGBps: 10.3,
      ll128BlockGBps: 22.3,
      copyBlockGBps: 35.1,
      pairsBlockGBps: 23.8,
    },
  },
  common: {
    nvlinkPayload: 0.825,
    pciPayload: 1.15,
    netPayload: 0.954,
    operandCost: 0.0677,
    flagShare: 0.71,
    llThreadCost: 0.275,
    pairsSliceRatio: 0.801,
    nvlsBlockGBps: 17.3,
    nvlsHopUs: 3.84,
    nvlsSliceUs: 3.81,
    nvlsSetupUs: 6.87,
    pairsSetupUs: 1.23,
    shmHopUs: 2,
    processesUs: 12.5,
    netStepUs: 0.725,
    netHopUs: 7.72,
  },
};
