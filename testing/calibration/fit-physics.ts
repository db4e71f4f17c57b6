import { generations, type Generation } from '../../src/planner/tuning/constants.js';
import type { DataTypeName } from '../../src/planner/tuning/names.js';
import type { ScheduledCollective } from '../../src/planner/schedule/schedule.js';
import type { Environment } from '../../src/planner/simulate/environment.js';
import {
  commonParameters,
  type CommonParameter,
  generationParameters,
  type GenerationParameter,
  type Physics,
  type PhysicsName,
  type PhysicsParameter,
  withPhysics,
} from '../../src/planner/simulate/physics.js';
import type { Simulator } from '../../src/planner/simulate/simulate.js';

/** One measured time. */
export interface Measurement {
  readonly simulator: Simulator;
  readonly generation: Generation;
  /** The machine that is left out together with it. */
  readonly machine: string;
  readonly collective: ScheduledCollective;
  readonly bytes: number;
  readonly type: DataTypeName;
  /** The same object for equal environments, because the simulator keeps rates by it. */
  readonly environment: Environment;
  readonly timeUs: number;
  /** Share of a measurement that it counts as in a fit. */
  readonly weight: number;
  /** True for a time that NCCL's own model believes, which is no measurement. */
  readonly isBelief: boolean;
}

/** Properties of a measurement that determine the parameters it depends on. */
interface Traits {
  readonly way: 'LL' | 'LL128' | 'Simple' | 'NVLS' | 'pairs LL' | 'pairs Simple';
  readonly isNet: boolean;
}

function traitsOf({ simulator, collective, bytes, type }: Measurement): Traits | undefined {
  const simulated = simulator.simulate(collective, bytes, { dataType: type, physics: startingPhysics });
  if (simulated === undefined) return undefined;
  const { choice, protocol } = simulated;
  const isSwitch = choice?.algorithm === 'NVLS' || choice?.algorithm === 'NVLSTree';
  return {
    way: isSwitch ? 'NVLS' : choice === undefined ? (protocol === 'LL' ? 'pairs LL' : 'pairs Simple') : protocol,
    isNet: simulator.usesNetwork,
  };
}

/** Caches simulations for the fit. */
function isAffected({ base, generation }: Variable, measurement: Measurement, traits: Traits | undefined): boolean {
  if (traits === undefined || (generation !== undefined && generation !== measurement.generation)) return false;
  const { way, isNet } = traits;
  switch (base) {
    case 'launchUs':
      return true;
    case 'singleCallUs':
      return measurement.environment.launch === 'single';
    case 'launchCallUs':
      return measurement.environment.launch !== 'single' && (measurement.environment.gpusPerThread ?? 1) > 1;
    case 'byteSumCost':
      return measurement.type === 'int8';
    case 'windowCtaRatio':
      return false;
    case 'netCrowding':
      return isNet && way !== 'NVLS';
    case 'flagShare':
      return way === 'LL' || way === 'LL128' || way === 'pairs LL';
    case 'llHopUs':
    case 'llThreadCost':
    case 'llBlockGBps':
      return way === 'LL' || way === 'pairs LL';
    case 'll128HopUs':
    case 'll128BlockGBps':
      return way === 'LL128';
    case 'simpleHopUs':
      return way === 'Simple' || way === 'pairs Simple' || (way === 'NVLS' && isNet);
    case 'simpleSliceUs':
      return way === 'Simple' || way === 'pairs Simple';
    case 'copyBlockGBps':
      return way === 'Simple' || way === 'pairs Simple';
    case 'operandCost':
      return way === 'Simple' || way === 'LL128' || way === 'LL';
    case 'pairsSliceRatio':
      return way === 'pairs Simple';
    case 'pairsBlockRatio':
      return way === 'pairs LL' || way === 'pairs Simple';
    case 'pairsSetupUs':
    case 'pairsPeerUs':
      return way === 'pairs LL' || way === 'pairs Simple';
    case 'nvlsBlockGBps':
    case 'nvlsHopUs':
    case 'nvlsSliceUs':
    case 'nvlsSetupUs':
      return way === 'NVLS';
    case 'nvlsBlocks':
    case 'nvlsTreeRatio':
      return false;
    case 'nvlinkPayload':
      return measurement.bytes >= 1 << 20;
    case 'nvlinkSpread':
      return measurement.collective === 'AllToAll' && measurement.bytes >= 1 << 20;
    case 'netPayload':
      return isNet && measurement.bytes >= 1 << 20;
    case 'netSendUs':
      return isNet && (way === 'LL128' || way === 'Simple' || way === 'pairs Simple' || way === 'NVLS');
    case 'netStepUs':
      return isNet;
    case 'netBlockGBps':
      return isNet && way === 'Simple';
    case 'netLlHopUs':
      return isNet && (way === 'LL' || way === 'pairs LL');
    case 'netHopUs':
      return isNet && way !== 'LL' && way !== 'pairs LL';
    case 'roceHopUs':
      return isNet && (measurement.environment.network === 'roce' || measurement.environment.network === 'verbs');
    case 'slingshotHopUs':
    case 'slingshotStepUs':
    case 'slingshotRendezvousUs':
      return isNet && measurement.environment.network === 'slingshot';
    case 'efaHopUs':
    case 'efaStepUs':
    case 'efaRendezvousUs':
      return isNet && measurement.environment.network === 'efa';
    case 'efaFirstHopUs':
    case 'efaFirstStepUs':
      return isNet && measurement.environment.network === 'efa-v1';
    case 'pciPayload':
      return isNet;
    case 'pciStorePayload':
    case 'shmHopUs':
      return false;
  }
}

/** Predicts a measured call. */
export function predictMeasured(measurement: Measurement, physics: Physics): number | undefined {
  const { simulator, collective, bytes, type, environment } = measurement;
  return simulator.simulate(collective, bytes, { dataType: type, physics, environment })?.timeUs;
}

/** Boost clock of the SMs, GHz, from data sheets of V100, A100, H100 and B200 for SXM. */
const CLOCK_GHZ: Readonly<Record<Generation, number>> = { volta: 1.53, ampere: 1.41, hopper: 1.98, blackwell: 1.965 };

/**
 * A parameter of a generation in clock cycles instead of µs, or bytes a cycle: what a thread block does takes about as many
 * cycles on all generations. So this is what a generation without measurements takes over from others.
 */
function byClock(value: number, { unit }: PhysicsParameter, generation: Generation): number {
  if (unit === 'ratio') return value;
  return unit === 'us' ? value * CLOCK_GHZ[generation] : value / CLOCK_GHZ[generation];
}

/**
 * Start of the fit, the same for all generations by clock, so that a fit without a machine knows nothing of it. Round
 * figures of what NVIDIA's and others' microbenchmarks of such GPUs have at 1.7 GHz.
 */
const startingCycles: Readonly<Record<Exclude<GenerationParameter, UnfittedParameter>, number>> = {
  launchUs: 6 * 1.7,
  llHopUs: 1.7,
  ll128HopUs: 2.5 * 1.7,
  simpleHopUs: 2 * 1.7,
  simpleSliceUs: 3 * 1.7,
  llBlockGBps: 6 / 1.7,
  ll128BlockGBps: 20 / 1.7,
  copyBlockGBps: 25 / 1.7,
  netBlockGBps: 20 / 1.7,
  nvlsBlockGBps: 17 / 1.7,
  nvlsHopUs: 3 * 1.7,
  nvlsSliceUs: 3 * 1.7,
  nvlsSetupUs: 5 * 1.7,
};

type UnfittedParameter = 'nvlsBlocks' | 'nvlsTreeRatio';

/**
 * Not fitted. `nvlsTreeRatio`: measurements of Hopper show no loss, and of Blackwell two racks of GB300 are the only ones whose
 * NICs are not the limit. `nvlsBlocks`: 32 channels of two GB200 trays move no more than 24 of B200, and NCCL itself begins 24
 * since 2.27.3; elsewhere the most that NCCL begins.
 */
const unfitted: Readonly<Record<UnfittedParameter, Readonly<Record<Generation, number>>>> = {
  nvlsBlocks: { volta: 32, ampere: 32, hopper: 32, blackwell: 24 },
  nvlsTreeRatio: { volta: 1, ampere: 1, hopper: 1, blackwell: 0.58 },
};

export const startingPhysics: Physics = {
  of: Object.fromEntries(
    generations.map((generation) => [
      generation,
      {
        ...Object.fromEntries(
          (Object.entries(startingCycles) as [GenerationParameter, number][]).map(([name, value]) => [
            name,
            value / byClock(1, generationParameters[name], generation),
          ]),
        ),
        nvlsBlocks: unfitted.nvlsBlocks[generation],
        nvlsTreeRatio: unfitted.nvlsTreeRatio[generation],
      },
    ]),
  ) as Physics['of'],
  common: {
    nvlinkPayload: 0.85,
    nvlinkSpread: 0.95,
    pciPayload: 1.15,
    pciStorePayload: 0.87,
    netPayload: 0.98,
    operandCost: 0.1,
    byteSumCost: 0.2,
    flagShare: 0.6,
    llThreadCost: 0.2,
    pairsBlockRatio: 0.65,
    pairsSliceRatio: 0.7,
    pairsSetupUs: 0,
    pairsPeerUs: 0.2,
    shmHopUs: 0.5,
    launchCallUs: 4,
    netStepUs: 0.1,
    netSendUs: 1.5,
    netCrowding: 3,
    // NCCL's figure for a step with Simple, 14 µs, less a hop between GPUs.
    netHopUs: 12,
    // Between that and NCCL's figure for LL, 2.7 µs, which leaves out what its constant of a call has.
    netLlHopUs: 7,
    // What was taken for these networks before any was measured, so that a fit without one knows nothing of it.
    roceHopUs: 0,
    slingshotHopUs: 0,
    slingshotStepUs: 0,
    slingshotRendezvousUs: 0,
    efaHopUs: 12,
    efaStepUs: 0,
    efaRendezvousUs: 0,
    efaFirstHopUs: 12,
    efaFirstStepUs: 0,
    singleCallUs: 30,
    windowCtaRatio: 1,
  },
};

/** Generations with measurements; Volta gets the values of Ampere. */
const fitted = generations.filter((generation) => generation !== 'volta');

/**
 * Strength of the pull between generations: the spread of a parameter between them that counts as normal, as a
 * logarithm.
 */
const USUAL_SPREAD = 0.6;
/** Weight of the pull of other generations, in measurements. */
const PULL_WEIGHT = 0.02;
/** A parameter that all share is pulled to its start: a quarter of its plausible range counts as usual. */
const STIFFNESS = 4;
/** Error up to which NCCL's belief counts in full. */
const BELIEF_OUTLIER = 0.5;
/** Errors beyond this are outliers (another version chose otherwise, a host had a hiccup), and count less and less. */
const SETTLED_OUTLIER = 0.2;

interface Variable {
  readonly name: PhysicsName;
  readonly parameter: PhysicsParameter;
  readonly generation: Generation | undefined;
  readonly base: GenerationParameter | CommonParameter;
}

function variables(): Variable[] {
  const own = (Object.entries(generationParameters) as [GenerationParameter, PhysicsParameter][])
    .filter(([base]) => !(base in unfitted))
    .flatMap(([base, parameter]) =>
      fitted.map((generation) => ({ name: `${base}.${generation}` as const, parameter, generation, base })),
    );
  const common = (Object.entries(commonParameters) as [CommonParameter, PhysicsParameter][]).map(([base, parameter]) => ({
    name: base,
    parameter,
    generation: undefined,
    base,
  }));
  return [...own, ...common];
}

/**
 * Least squares of the logarithms of the errors, by Gauss-Newton steps with damping; outliers are weighed down (after Geman
 * and McClure). A parameter of one generation is pulled towards those of the others, in clock cycles, as by a fiftieth of a
 * measurement, so parameters without a measurement take their values.
 */
export function fitPhysics(
  measurements: readonly Measurement[],
  start = startingPhysics,
  rounds = 6,
  onRound?: (round: number, error: number) => void,
): Physics {
  const all = variables();
  let physics = start;
  const traits = measurements.map(traitsOf);
  const residual = (measurement: Measurement, by: Physics) =>
    Math.log((predictMeasured(measurement, by) ?? measurement.timeUs) / measurement.timeUs);
  let damping = 1e-2;
  let residuals = measurements.map((measurement) => residual(measurement, physics));
  for (let round = 0; round < rounds; round++) {
    // At first all measurements count: an outlier may be due to the start values.
    const outlier = SETTLED_OUTLIER * Math.max(1, 4 / 2 ** round);
    let cost = costOf(residuals, measurements, all, physics, outlier);
    onRound?.(round, mean(residuals.filter((_, index) => measurements[index]?.isBelief === false).map(Math.abs)));
    const normal = all.map(() => new Float64Array(all.length));
    const gradient = new Float64Array(all.length);
    const columns = all.map((variable) => {
      const step = 0.02 * (variable.parameter.most - variable.parameter.least);
      const value = valueOf(physics, variable);
      const moved = value + step > variable.parameter.most ? -step : step;
      const changed = withPhysics(physics, { [variable.name]: value + moved });
      const scale = step / 0.02 / moved;
      return Float64Array.from(measurements, (measurement, index) =>
        isAffected(variable, measurement, traits[index]) ? (residual(measurement, changed) - (residuals[index] ?? 0)) * scale : 0,
      );
    });
    const weights = residuals.map((error, index) => weightOf(error, measurements[index], outlier));
    for (let a = 0; a < all.length; a++) {
      for (let b = a; b < all.length; b++) {
        let sum = 0;
        for (let index = 0; index < measurements.length; index++)
          sum += (weights[index] ?? 0) * (columns[a]?.[index] ?? 0) * (columns[b]?.[index] ?? 0);
        (normal[a] ?? gradient)[b] = sum;
        (normal[b] ?? gradient)[a] = sum;
      }
      let sum = 0;
      for (let index = 0; index < measurements.length; index++)
        sum -= (weights[index] ?? 0) * (columns[a]?.[index] ?? 0) * (residuals[index] ?? 0);
      gradient[a] = sum;
    }
    for (const [index, variable] of all.entries()) {
      if (variable.generation === undefined) {
        // Parameters without measurements keep their start values.
        const own = normal[index] ?? gradient;
        own[index] = (own[index] ?? 0) + PULL_WEIGHT * STIFFNESS ** 2;
        gradient[index] = (gradient[index] ?? 0) - PULL_WEIGHT * STIFFNESS * pullOf(physics, variable);
        continue;
      }
      // The slopes of the pull by each generation's own value: what moves all of them alike meets no resistance.
      const slopes = all.map((other, number) => {
        if (other.base !== variable.base) return 0;
        const slope = (other.parameter.most - other.parameter.least) / valueOf(physics, other) / USUAL_SPREAD;
        return number === index ? slope : -slope / (fitted.length - 1);
      });
      const pull = pullOf(physics, variable);
      slopes.forEach((slope, row) => {
        if (slope === 0) return;
        gradient[row] = (gradient[row] ?? 0) - PULL_WEIGHT * slope * pull;
        slopes.forEach((other, column) => {
          (normal[row] ?? gradient)[column] = (normal[row]?.[column] ?? 0) + PULL_WEIGHT * slope * other;
        });
      });
    }
    let isBetter = false;
    for (let attempt = 0; attempt < 5 && !isBetter; attempt++) {
      const reach = 0.3;
      const bounds = all.map((variable) => {
        const { least, most } = variable.parameter;
        const value = valueOf(physics, variable);
        return [Math.max(-reach, (least - value) / (most - least)), Math.min(reach, (most - value) / (most - least))] as const;
      });
      const steps = minimumInBox(
        normal.map((row, a) => row.map((value, b) => (a === b ? value * (1 + damping) + 1e-6 : value))),
        gradient,
        Float64Array.from(bounds, ([least]) => least),
        Float64Array.from(bounds, ([, most]) => most),
      );
      const changes = Object.fromEntries(
        all.map((variable, index) => [
          variable.name,
          valueOf(physics, variable) + (steps[index] ?? 0) * (variable.parameter.most - variable.parameter.least),
        ]),
      ) as Partial<Record<PhysicsName, number>>;
      const next = withPhysics(physics, changes);
      const found = measurements.map((measurement) => residual(measurement, next));
      const nextCost = costOf(found, measurements, all, next, outlier);
      if (nextCost < cost) {
        isBetter = true;
        physics = next;
        residuals = found;
        cost = nextCost;
        damping = Math.max(1e-4, damping / 4);
      } else {
        damping *= 6;
      }
    }
    if (!isBetter) break;
  }
  return { ...physics, of: { ...physics.of, volta: physics.of.ampere } };
}

function costOf(
  residuals: readonly number[],
  measurements: readonly Measurement[],
  all: readonly Variable[],
  physics: Physics,
  outlier: number,
): number {
  const data = residuals.reduce((sum, error, index) => {
    const measurement = measurements[index];
    return sum + (measurement?.weight ?? 1) * (error ** 2 / (1 + (error / outlierOf(measurement, outlier)) ** 2));
  }, 0);
  return data + all.reduce((sum, variable) => sum + PULL_WEIGHT * pullOf(physics, variable) ** 2, 0);
}

function weightOf(error: number, measurement: Measurement | undefined, outlier: number): number {
  return (measurement?.weight ?? 1) / (1 + (error / outlierOf(measurement, outlier)) ** 2) ** 2;
}

function outlierOf(measurement: Measurement | undefined, outlier: number): number {
  return measurement?.isBelief === true ? Math.max(outlier, BELIEF_OUTLIER) : outlier;
}

function pullOf(physics: Physics, variable: Variable): number {
  if (variable.generation === undefined) {
    const { least, most } = variable.parameter;
    return (STIFFNESS * (valueOf(physics, variable) - valueOf(startingPhysics, variable))) / (most - least);
  }
  const others = fitted
    .filter((generation) => generation !== variable.generation)
    .map((generation) => Math.log(byClock(valueOf(physics, { ...variable, generation }), variable.parameter, generation)));
  const own = byClock(valueOf(physics, variable), variable.parameter, variable.generation);
  return (Math.log(own) - mean(others)) / USUAL_SPREAD;
}

function valueOf(physics: Physics, { base, generation }: Pick<Variable, 'base' | 'generation'>): number {
  return generation === undefined ? physics.common[base as CommonParameter] : physics.of[generation][base as GenerationParameter];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

/** Least of the quadratic ½ xᵀ·matrix·x - gradientᵀ·x within a box: one variable after the other, until they settle. */
function minimumInBox(
  matrix: readonly Float64Array[],
  gradient: Float64Array,
  least: Float64Array,
  most: Float64Array,
): Float64Array {
  const size = gradient.length;
  const x = new Float64Array(size);
  for (let sweep = 0; sweep < 500; sweep++) {
    let change = 0;
    for (let row = 0; row < size; row++) {
      const own = matrix[row] ?? gradient;
      let rest = gradient[row] ?? 0;
      for (let column = 0; column < size; column++) if (column !== row) rest -= (own[column] ?? 0) * (x[column] ?? 0);
      const value = Math.max(least[row] ?? 0, Math.min(most[row] ?? 0, rest / Math.max(1e-9, own[row] ?? 0)));
      change = Math.max(change, Math.abs(value - (x[row] ?? 0)));
      x[row] = value;
    }
    if (change < 1e-6) break;
  }
  return x;
}
