import type { Generation } from '../tuning/constants.js';
import type { CallPlan } from './call-plan.js';
import type { Environment } from './environment.js';
import type { Physics } from './physics.js';
import type { Conditions } from './rates.js';

/** Exponent by which the time of a call and that of its launches are joined. */
const LAUNCH_CROWDING = 4;

/** Boost clocks of NVIDIA's data sheets, GHz: of the GPU that was measured for a generation, and of its PCIe cards. */
const measuredGHz: Readonly<Partial<Record<Generation, number>>> = { ampere: 1.41, blackwell: 1.965 };
const cardGHz: Readonly<Record<number, number>> = { 86: 1.74, 89: 2.52, 120: 2.6 };

/** Time of a kernel that starts and ends: as many cycles on a card as on the measured GPU of its generation. */
export function kernelLaunchUs({ physics, generation, compCap }: Conditions): number {
  const cards = cardGHz[compCap];
  const ratio = cards === undefined ? 1 : (measuredGHz[generation] ?? cards) / cards;
  return physics.of[generation].launchUs * ratio;
}

/** Time before the first move: the kernel's launch, and its setup. */
export function startUs({ isPairs, peers, isSwitch }: CallPlan, conditions: Conditions): number {
  const { physics, generation, environment } = conditions;
  const { skewUs = 0 } = environment;
  const { nvlsSetupUs } = physics.of[generation];
  const { pairsSetupUs, pairsPeerUs } = physics.common;
  const pairsUs = isPairs ? pairsSetupUs + pairsPeerUs * (peers - 1) : 0;
  return kernelLaunchUs(conditions) + pairsUs + (isSwitch ? nvlsSetupUs : 0) + skewUs;
}

/** Calls that are shorter than their launches wait for these, and a little where both are similar. */
export function withLaunches(timeUs: number, { common }: Physics, { launch, gpusPerThread = 1 }: Environment): number {
  const launchUs = launch === 'single' ? common.singleCallUs : gpusPerThread === 1 ? 0 : gpusPerThread * common.launchCallUs;
  return launch === 'graph' || launchUs === 0 ? timeUs : joined(timeUs, launchUs, LAUNCH_CROWDING);
}

/** The longer of two times, and a little more where both are similar. */
export function joined(a: number, b: number, exponent: number): number {
  const longer = Math.max(a, b);
  return longer === 0 ? 0 : longer * ((a / longer) ** exponent + (b / longer) ** exponent) ** (1 / exponent);
}
