import type { Generation } from '../tuning/constants.js';
import type { CallPlan } from './call-plan.js';
import type { Environment } from './environment.js';
import type { Physics } from './physics.js';

/** Exponent by which the time of a call and that of its launches are joined. */
const LAUNCH_CROWDING = 4;

/** Time before the first move: the kernel's launch, and its setup. */
export function startUs(
  { isPairs, peers, isSwitch }: CallPlan,
  physics: Physics,
  generation: Generation,
  { skewUs = 0 }: Environment,
): number {
  const { launchUs, nvlsSetupUs } = physics.of[generation];
  const { pairsSetupUs, pairsPeerUs } = physics.common;
  const pairsUs = isPairs ? pairsSetupUs + pairsPeerUs * (peers - 1) : 0;
  return launchUs + pairsUs + (isSwitch ? nvlsSetupUs : 0) + skewUs;
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
