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
  netBlockGBps: {
    unit: 'GB/s',
    least: 8,
    most: 60,
    meaning: 'Simple, rings: data that a thread block copies into the buffer of a NIC',
  },
  nvlsBlockGBps: { unit: 'GB/s', least: 8, most: 40, meaning: 'NVLink SHARP: data that the warps of a block scatter or gather' },
  nvlsBlocks: {
    unit: 'ratio',
    least: 8,
    most: 32,
    meaning: 'NVLink SHARP on one node: number of blocks beyond which more move no more data',
  },
  nvlsTreeRatio: {
    unit: 'ratio',
    least: 0.4,
    most: 1.1,
    meaning: 'NVLink SHARP and trees: the same between nodes, where other warps send and receive, by that on one node',
  },
  nvlsHopUs: { unit: 'us', least: 0.5, most: 10, meaning: 'NVLink SHARP: counter through the NVSwitch' },
  nvlsSliceUs: { unit: 'us', least: 0.2, most: 8, meaning: 'NVLink SHARP: barriers and fence of a slice' },
  nvlsSetupUs: { unit: 'us', least: 0, most: 20, meaning: 'NVLink SHARP: what a kernel needs to begin with, beyond others' },
} as const satisfies Record<string, PhysicsParameter>;

/** Parameters that are the same for all. */
export const commonParameters = {
  nvlinkPayload: {
    unit: 'ratio',
    least: 0.75,
    most: 0.95,
    meaning: 'payload of an NVLink by what its wires carry: packets have headers',
  },
  nvlinkSpread: {
    unit: 'ratio',
    least: 0.7,
    most: 1,
    meaning: 'all-to-all: payload of an NVLink whose data go to several GPUs at once, by that of a ring',
  },
  pciPayload: { unit: 'ratio', least: 0.7, most: 1.3, meaning: 'payload of a PCI link to a NIC by what NCCL counts for it' },
  pciStorePayload: {
    unit: 'ratio',
    least: 0.7,
    most: 1.3,
    meaning: 'the same where kernels store into memory of other GPUs or of the host: packets of 128 bytes',
  },
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
  byteSumCost: {
    unit: 'ratio',
    least: 0,
    most: 2,
    meaning: 'what each sum of 8-bit numbers costs beyond that of larger ones, by a copy',
  },
  flagShare: {
    unit: 'ratio',
    least: 0,
    most: 1,
    meaning: 'LL, LL128: the part of a hop in which the thread block can do nothing else',
  },
  llThreadCost: { unit: 'ratio', least: 0, most: 1, meaning: 'LL: what 512 threads a block make a hop longer, by a hop of none' },
  pairsBlockRatio: {
    unit: 'ratio',
    least: 0.3,
    most: 1,
    meaning: 'send and receive: data that a thread block sends, by what it copies in collectives',
  },
  pairsSliceRatio: {
    unit: 'ratio',
    least: 0.2,
    most: 2,
    meaning: 'send and receive: barriers and fence of a slice, by those of collectives',
  },
  pairsSetupUs: { unit: 'us', least: -4, most: 6, meaning: 'send and receive: what a kernel needs to begin with, beyond others' },
  pairsPeerUs: { unit: 'us', least: 0, most: 1.5, meaning: 'send and receive: the same for each peer beyond the first' },
  shmHopUs: { unit: 'us', least: 0, most: 8, meaning: 'a hop through memory of the host, beyond one over NVLink' },
  launchCallUs: { unit: 'us', least: 1, most: 10, meaning: 'what a thread that launches on several GPUs needs for each' },
  netStepUs: { unit: 'us', least: 0, most: 0.15, meaning: 'what a NIC needs for each message besides its bytes' },
  netSendUs: {
    unit: 'us',
    least: 0,
    most: 4,
    meaning: 'Simple, LL128: an access of a thread block to memory of the host, as to tell the proxy of a slice',
  },
  netCrowding: {
    unit: 'ratio',
    least: 2,
    most: 8,
    meaning: 'exponent by which the times of steps and of busy NICs are joined: 2 adds much, 8 takes the longer one',
  },
  netHopUs: { unit: 'us', least: 1, most: 30, meaning: 'a hop over InfiniBand with Simple or LL128: two proxies, NIC, wire' },
  netLlHopUs: {
    unit: 'us',
    least: 1,
    most: 30,
    meaning: 'the same with LL, whose data and flags the proxy reads in memory of the CPU',
  },
  roceHopUs: { unit: 'us', least: 0, most: 20, meaning: 'RoCE: a hop, beyond one over InfiniBand' },
  slingshotHopUs: { unit: 'us', least: -2, most: 30, meaning: 'Slingshot with the plugin of libfabric: the same' },
  slingshotStepUs: {
    unit: 'us',
    least: 0,
    most: 10,
    meaning: 'Slingshot: what a NIC and its plugin need for each message, beyond verbs',
  },
  slingshotRendezvousUs: {
    unit: 'us',
    least: 0,
    most: 20,
    meaning: 'Slingshot: a message of 8 KiB and more, which waits for the receiver',
  },
  efaHopUs: { unit: 'us', least: 0, most: 60, meaning: 'EFA with RDMA writes: a hop, beyond one over InfiniBand' },
  efaStepUs: { unit: 'us', least: 0, most: 10, meaning: 'EFA with RDMA writes: each message, beyond verbs' },
  efaRendezvousUs: {
    unit: 'us',
    least: 0,
    most: 40,
    meaning: 'EFA with RDMA writes: a message of 8 KiB and more, which waits for the receiver',
  },
  efaFirstHopUs: {
    unit: 'us',
    least: 0,
    most: 120,
    meaning: 'EFA of the first generation, which sends and receives: a hop, beyond one over InfiniBand',
  },
  efaFirstStepUs: { unit: 'us', least: 0, most: 20, meaning: 'EFA of the first generation: each message, beyond verbs' },
  singleCallUs: {
    unit: 'us',
    least: 10,
    most: 60,
    meaning: 'a call of PyTorch that no other one hides: what its thread needs until the kernel is launched',
  },
  windowCtaRatio: {
    unit: 'ratio',
    least: 0.5,
    most: 2,
    meaning: "symmetric kernels: throughput of a CTA, by NVIDIA's figures for Blackwell and Rubin",
  },
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
  launchUs: 8.37,
  llHopUs: 0.844,
  ll128HopUs: 3.04,
  simpleHopUs: 3.25,
  simpleSliceUs: 5.4,
  llBlockGBps: 5.19,
  ll128BlockGBps: 8.12,
  copyBlockGBps: 18.7,
  netBlockGBps: 18.5,
  nvlsBlockGBps: 13.5,
  nvlsBlocks: 32,
  nvlsTreeRatio: 1,
  nvlsHopUs: 10,
  nvlsSliceUs: 6.55,
  nvlsSetupUs: 20,
};

/**
 * Result of `npm run calibrate`, rounded. There are no measurements of Volta: it has Ampere's values. NVLink SHARP of Blackwell
 * is chosen for calls of 8 GiB and more, of which the fit has few (docs/notes/simulate.md).
 */
export const measuredPhysics: Physics = {
  of: {
    volta: ampere,
    ampere,
    hopper: {
      launchUs: 4.38,
      llHopUs: 0.744,
      ll128HopUs: 2.34,
      simpleHopUs: 1.63,
      simpleSliceUs: 2.66,
      llBlockGBps: 9.47,
      ll128BlockGBps: 14.7,
      copyBlockGBps: 34.3,
      netBlockGBps: 23.7,
      nvlsBlockGBps: 17.2,
      nvlsBlocks: 32,
      nvlsTreeRatio: 1,
      nvlsHopUs: 6.94,
      nvlsSliceUs: 3.96,
      nvlsSetupUs: 13.8,
    },
    blackwell: {
      launchUs: 6.88,
      llHopUs: 1.22,
      ll128HopUs: 2.08,
      simpleHopUs: 1.76,
      simpleSliceUs: 3.54,
      llBlockGBps: 10.2,
      ll128BlockGBps: 17.1,
      copyBlockGBps: 36,
      netBlockGBps: 24.7,
      nvlsBlockGBps: 20.7,
      nvlsBlocks: 24,
      nvlsTreeRatio: 0.58,
      nvlsHopUs: 10,
      nvlsSliceUs: 3.4,
      nvlsSetupUs: 20,
    },
  },
  common: {
    nvlinkPayload: 0.834,
    nvlinkSpread: 0.911,
    pciPayload: 1.15,
    // Not fitted: what L40S and RTX PRO 6000 reach (docs/notes/simulate.md).
    pciStorePayload: 0.87,
    netPayload: 0.979,
    operandCost: 0.159,
    byteSumCost: 0.153,
    flagShare: 0.6,
    llThreadCost: 0.257,
    pairsBlockRatio: 0.637,
    pairsSliceRatio: 0.455,
    pairsSetupUs: 0.421,
    pairsPeerUs: 0.314,
    // Not fitted: four L40S (docs/notes/simulate.md).
    shmHopUs: 0.5,
    launchCallUs: 4.04,
    netStepUs: 0.103,
    netSendUs: 1.56,
    netCrowding: 2.83,
    netHopUs: 2.99,
    netLlHopUs: 3.6,
    roceHopUs: 4.16,
    slingshotHopUs: -0.524,
    slingshotStepUs: 1.88,
    slingshotRendezvousUs: 4.77,
    efaHopUs: 18.9,
    efaStepUs: 0,
    efaRendezvousUs: 7.65,
    efaFirstHopUs: 7.61,
    efaFirstStepUs: 7.93,
    singleCallUs: 39.1,
    // Not fitted: too few times are published.
    windowCtaRatio: 1,
  },
};
