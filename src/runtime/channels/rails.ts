import { isLinkLocal } from '../bootstrap/address.js';
import { reaches, type Nic } from '../bootstrap/interfaces.js';

/**
 * The NICs of a host that channels may use, in the order of rails: NICs in one subnet have the same place on every host. Without
 * the user's choice, a NIC other than the first counts only if each other host has one in its subnet.
 *
 * @param hosts NICs of all hosts, those of rank 0's host first
 * @param named true if the user named each of them
 */
export function railsOf(mine: readonly Nic[], hosts: readonly (readonly Nic[])[], named: boolean): Nic[] {
  const others = hosts.filter((nics) => nics !== mine);
  const used = mine.filter(
    (nic, index) =>
      named ||
      index === 0 ||
      // All links have the subnet fe80::/64, so it does not show which NICs are connected.
      (!isLinkLocal(nic.host) && others.every((nics) => nics.some((other) => shareSubnet(nic, other)))),
  );
  const first = hosts[0] ?? mine;
  const placeOf = (nic: Nic): number => {
    const place = first.findIndex((other) => other === nic || shareSubnet(nic, other));
    return place < 0 ? first.length : place;
  };
  return used.sort((a, b) => placeOf(a) - placeOf(b));
}

/** True for two addresses of one subnet. An address that several hosts have, such as that of a local bridge, connects none. */
export function shareSubnet(a: Nic, b: Nic): boolean {
  return a.host !== b.host && reaches(a, b.host) && reaches(b, a.host);
}
