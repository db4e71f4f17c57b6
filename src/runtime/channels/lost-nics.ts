import { systemInterfaces } from '../bootstrap/interfaces.js';
import { wasSilent } from '../bootstrap/liveness.js';
import type { LostNics, RankLocation } from './location.js';

/**
 * NICs that have failed since `init`: they are down, or another host was silent over them.
 *
 * @param others locations of ranks of other hosts
 */
export function failedNics({ nics }: RankLocation, others: readonly RankLocation[]): LostNics {
  const running = new Set(systemInterfaces().map(({ name, address }) => `${name} ${address}`));
  const addresses = others.flatMap((other) => other.nics.map(({ host }) => host));
  const failed = nics.flatMap(({ name, host }): [string, string][] => {
    if (!running.has(`${name} ${host.replace(/%.*/, '')}`)) return [[name, `it is down, or ${host} is no longer its address`]];
    const silent = addresses.find((address) => wasSilent(host, address));
    return silent === undefined ? [] : [[name, `no answer from ${silent}`]];
  });
  return Object.fromEntries(failed);
}

/** The location without these NICs; one that would have none keeps all. */
export function withoutNics(location: RankLocation, lost: LostNics): RankLocation {
  const nics = location.nics.filter(({ name }) => lost[name] === undefined);
  return nics.length === 0 ? location : { ...location, nics, unconnected: { ...location.unconnected, ...lost } };
}
