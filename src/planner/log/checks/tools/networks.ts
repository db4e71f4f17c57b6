import type { LogFinding } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { hasEnded } from '../../job/outcome.js';
import { onHost, outputsOf, partOfDown } from './outputs.js';

/** Interfaces of hosts: links that are down or slow, MTUs that differ, counters of trouble. */
export function checkNetworks(model: LogModel): LogFinding[] {
  return [...mtus(model), ...ethernet(model)];
}

interface HostMtu {
  readonly host: string;
  readonly name: string;
  readonly mtu: number;
  readonly place: LogFinding['places'][number];
}

/** MTUs that hosts should have in common: of interfaces of one name, of those on which they meet, of ports of their NICs. */
function mtus(model: LogModel): LogFinding[] {
  const interfaces = outputsOf(model, 'ip').flatMap(({ facts, host, place: at }) =>
    facts.interfaces.flatMap(({ name, mtu, isUp, place }): HostMtu[] =>
      mtu === undefined || isUp !== true || /^(?:lo|docker|veth|virbr|br-|cni|cali|flannel|tun)/.test(name)
        ? []
        : [{ host: host === '' ? `file ${at.file + 1}` : host, name, mtu, place }],
    ),
  );
  const meeting = new Map(
    model.processes.flatMap(({ host, bootstrap }) => (bootstrap === undefined ? [] : [[host, bootstrap.name]])),
  );
  const ports = outputsOf(model, 'ports').flatMap(({ facts, host, place: at }) =>
    facts.ports.flatMap(({ device, activeMtu, isActive, layer, place }): HostMtu[] =>
      activeMtu === undefined || isActive === false
        ? []
        : [
            {
              host: host === '' ? `file ${at.file + 1}` : host,
              name: `${device} (${layer === '' ? 'RDMA' : layer})`,
              mtu: activeMtu,
              place,
            },
          ],
    ),
  );
  const byName = [...new Set([...interfaces, ...ports].map(({ name }) => name))].flatMap((name) =>
    differing(
      [...interfaces, ...ports].filter((each) => each.name === name),
      model,
    ),
  );
  return byName.length > 0
    ? byName
    : differing(
        interfaces.filter(({ host, name }) => meeting.get(host) === name),
        model,
      );
}

function differing(list: readonly HostMtu[], model: LogModel): LogFinding[] {
  const [first] = list;
  const other = list.find(({ mtu, host }) => first !== undefined && host !== first.host && mtu !== first.mtu);
  if (first === undefined || other === undefined) return [];
  const isHarmless = hasEnded(model);
  return [
    {
      code: 'mtu-differs',
      severity: isHarmless ? 'info' : 'warning',
      kind: isHarmless ? 'note' : 'failure',
      explains: ['connect-retry', 'ib-retry-exceeded', 'watchdog-timeout', 'bandwidth-low'],
      problem: `${first.name} has an MTU of ${first.mtu} on ${first.host}, ${other.name === first.name ? 'and' : `and ${other.name} one of`} ${other.mtu} on ${other.host}`,
      cause: 'large packets are lost on the way; connections are made, and then stand still',
      remedy: 'set one MTU on all hosts and switches; `ping -M do -s 8972` between the hosts for 9000',
      places: [first.place, other.place],
    },
  ];
}

/** Counters of lost, damaged or refused packets, by the names of common drivers; pauses are flow control and no loss. */
const trouble =
  /^(?:rx_discards_phy|tx_discards_phy|rx_crc_errors(?:_phy)?|rx_symbol_err_phy|rx_out_of_buffer|rx_dropped|tx_dropped|rx_missed_errors|rx_fcs_errors|rx_errors|tx_errors|link_down_events_phy|out_of_sequence|packet_seq_err|local_ack_timeout_err|rx_icrc_encapsulated|roce_adp_retrans|rnr_nak_retry_err)$/;
const MANY = 1000;

function ethernet(model: LogModel): LogFinding[] {
  return outputsOf(model, 'ethtool').flatMap((output): LogFinding[] => {
    const on = onHost(output);
    const findings: LogFinding[] = [];
    const dark = output.facts.ports.filter(({ hasLink }) => hasLink === false);
    const up = output.facts.ports.filter(({ hasLink }) => hasLink === true);
    if (dark.length > 0)
      findings.push({
        code: 'port-down',
        ...partOfDown(
          model,
          output.host,
          dark.map(({ name }) => name),
          up.length > dark.length,
          ['ib-retry-exceeded', 'nic-unused', 'connect-failed'],
        ),
        problem: `${dark.map(({ name }) => name).join(', ')}${on} has no link`,
        cause: 'cable, transceiver or switch port; or a port that is meant to be unused',
        remedy: "look at the cable and the switch's port",
        places: dark.map(({ place }) => place),
      });
    for (const { name, counters, place } of output.facts.ports) {
      const bad = [...counters]
        .filter(([counter, count]) => trouble.test(counter) && count >= MANY)
        .sort(([, a], [, b]) => b - a);
      const [worst] = bad;
      if (worst === undefined) continue;
      findings.push({
        code: 'port-counters',
        severity: hasEnded(model) ? 'info' : 'warning',
        kind: hasEnded(model) ? 'note' : 'risk',
        explains: ['ib-retry-exceeded', 'bandwidth-low'],
        problem: `${name === '' ? 'a NIC' : name}${on} counts trouble: ${bad
          .slice(0, 4)
          .map(([counter, count]) => `${counter} ${count}`)
          .join(', ')}`,
        cause: 'packets are lost or damaged: a bad cable or port, or a congested network without PFC and ECN (RoCE)',
        remedy:
          'take the counters twice with a test in between: `ethtool -S`; clean or replace the cable; set up PFC and ECN on NICs and switches',
        places: [place],
      });
    }
    return findings;
  });
}
