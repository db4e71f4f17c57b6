import { gidKind, ipv4OfGid } from '../../readers/rdma.js';
import type { LogModel } from '../job/model.js';
import { outputsOf } from './tools/outputs.js';
import type { LogFinding, LogFindingCode } from './finding.js';

/** Errors of queue pairs, whose causes the GIDs in the line tell apart. */
const codes: ReadonlySet<LogFindingCode> = new Set<LogFindingCode>([
  'ib-retry-exceeded',
  'ib-gid-missing',
  'ib-queue-pair',
  'ib-peer-unreachable',
  'ib-rails-unreachable',
]);
const gidsForm =
  /local ?gid(?: index (\d{1,3}), local gid)? ?([0-9a-f:.]{2,45}|N\/A),? {0,2}remote ?gids? ?([0-9a-f:.]{2,45}|N\/A)/i;

/** A queue pair of InfiniBand has no GID to choose: links, the subnet manager and partitions carry it. */
const onInfiniband: Pick<LogFinding, 'cause' | 'remedy'> = {
  cause:
    'the other side is gone (look for its log: did it end before?), or InfiniBand does not reach it: a link that went down or has errors, a subnet manager that gives no routes, or another partition (P_Key)',
  remedy:
    'the log of the peer first; then `ibstat` on both hosts (State Active, Physical state LinkUp, an SM lid), sminfo, and perfquery -x of both ports (symbol errors, link downed); ib_write_bw between them; NCCL_IB_TIMEOUT=22 helps only against short outages. No setting of GIDs matters here',
};

/** True if the device of the line, or else every RDMA device of the job, has InfiniBand as its link. */
function isInfiniband(quote: string, model: LogModel): boolean {
  const [, device] = /\bhca (\w{2,40})/.exec(quote) ?? [];
  const logged = model.processes.flatMap(({ devices }) => [...devices.values()].flatMap((each) => each.devices));
  const links = logged.flatMap(({ name, link }) => (link === undefined ? [] : [{ own: name, isIb: link === 'IB' }]));
  const ports = outputsOf(model, 'ports').flatMap(({ facts }) =>
    facts.ports.flatMap(({ device: own, layer }) => (layer === '' ? [] : [{ own, isIb: /^infiniband$/i.test(layer) }])),
  );
  const all = [...links, ...ports];
  const same = all.filter(({ own }) => own === device);
  const which = same.length > 0 ? same : all;
  return which.length > 0 && which.every(({ isIb }) => isIb);
}

/** Decides between the causes of an error of a queue pair by the GIDs of its line. NCCL prints them for RoCE only. */
export function byGids(finding: LogFinding, model: LogModel): LogFinding {
  if (!codes.has(finding.code) || finding.quote === undefined) return finding;
  if (finding.code === 'ib-retry-exceeded' && isInfiniband(finding.quote, model)) return { ...finding, ...onInfiniband };
  const [, index, local = '', remote = ''] = gidsForm.exec(finding.quote) ?? [];
  if (local === '') return finding;
  const kinds = [local, remote].map((gid) => (gid === 'N/A' ? 'unknown' : gidKind(gid)));
  const row = index === undefined ? '' : ` at index ${index}`;
  if (kinds[0] === 'none')
    return {
      ...finding,
      kind: 'fault',
      cause: `the GID of this port${row} is empty: no address belongs to it, in this network namespace or at all`,
      remedy:
        '`show_gids` in the container: NCCL_IB_GID_INDEX must be a row with an address (or unset it: 2.21 and later find one); use the host network, or give the pod the RoCE interface',
    };
  if (kinds.includes('link-local'))
    return {
      ...finding,
      kind: 'fault',
      cause: `the connection uses a link-local GID (${kinds[0] === 'link-local' ? local : remote})${row}, which no router and often no switch forwards: it is not the row of an IPv4 address`,
      remedy:
        '`show_gids` on both hosts, then NCCL_IB_GID_INDEX=<the row with v2 and an IPv4 address>, the same kind on both; if there is none, give the RoCE interface an IPv4 address (`ip addr`)',
    };
  const [from, to] = [ipv4OfGid(local), ipv4OfGid(remote)];
  if (from === undefined || to === undefined) return finding;
  const subnet = (address: string) => address.split('.').slice(0, 3).join('.');
  if (subnet(from) !== subnet(to))
    return {
      ...finding,
      cause: `${from} and ${to} are in different subnets: rails or networks without a route between them`,
      remedy: `ping -I ${from} ${to}; route between the subnets, or NCCL_CROSS_NIC=0 and the same NCCL_IB_HCA on all hosts, so that each NIC talks to its own rail`,
    };
  return finding.code === 'ib-retry-exceeded'
    ? {
        ...finding,
        cause: `${from} and ${to} are in one subnet and their GIDs fit, so packets are lost (a congested RoCE network without PFC and ECN, a bad link, another VLAN or MTU), or the peer died first`,
        remedy:
          'the log of the peer first (did it end before?); then `ethtool -S` of both NICs (discards, out_of_sequence), `ib_write_bw` between them; PFC and ECN on NICs and switches; NCCL_IB_TIMEOUT=22 and NCCL_IB_RETRY_CNT=7 against short outages',
      }
    : finding;
}
