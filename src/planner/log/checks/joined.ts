import { documentedVariables } from '../../nccl-variables.js';
import type { LogFinding, LogFindingCode } from './finding.js';
import type { LogPlace } from '../lines/line.js';
import type { LogModel } from '../job/model.js';
import { hasEnded, isInitialised } from '../job/outcome.js';
import { outputsOf } from './tools/outputs.js';

/** Facts of several hosts, or of a setting and its effect, that do not fit together. */
export function checkJoined(model: LogModel): LogFinding[] {
  return [...networks(model), ...interfaces(model), ...unmatched(model)];
}

/** Hosts that use different networks cannot read each other's handles. */
function networks(model: LogModel): LogFinding[] {
  const byName = new Map<string, { readonly hosts: Set<string>; readonly place: LogPlace }>();
  for (const { network, host } of model.processes) {
    if (network === undefined) continue;
    const known = byName.get(network.name);
    if (known === undefined) byName.set(network.name, { hosts: new Set([host]), place: network.place });
    else known.hosts.add(host);
  }
  // A line that was cut may have lost the end of the name. NCCL's own IB is the beginning of its plugin's IBext.
  for (const name of [...byName.keys()])
    if (name !== 'IB' && [...byName.keys()].some((other) => other !== name && other.startsWith(name))) byName.delete(name);
  if (byName.size < 2 || hasEnded(model) || isInitialised(model)) return [];
  const [first, second] = [...byName].sort(([, a], [, b]) => b.hosts.size - a.hosts.size);
  if (first === undefined || second === undefined || [...second[1].hosts].some((host) => first[1].hosts.has(host))) return [];
  const named = ([name, { hosts }]: typeof first) =>
    `${[...hosts].slice(0, 4).join(', ')}${hosts.size > 4 ? ', …' : ''} ${hosts.size === 1 ? 'uses' : 'use'} ${name}`;
  return [
    {
      code: 'network-mixed',
      severity: 'error',
      kind: 'fault',
      explains: [
        'address-family',
        'net-mismatch',
        'init-unfinished',
        'remote-closed',
        'connect-failed',
        'connect-retry',
        'calls-failed',
        'ib-retry-exceeded',
        'environment-differs',
        'no-rdma',
        'fabric-over-tcp',
      ],
      problem: `hosts use different networks: ${named(first)}, ${named(second)}`,
      cause:
        'a plugin or NIC was not found on some hosts (another image, LD_LIBRARY_PATH, a device that is missing in the container); a connection then reads the handle of the other network, such as an address of an impossible family',
      remedy:
        'compare the lines NET/… of these hosts; use one image; request the device (vpc.amazonaws.com/efa, rdma/…) for every pod; NCCL_NET names the network that all must use',
      places: [first[1].place, second[1].place],
      source: 'aws/aws-ofi-nccl#715',
    },
  ];
}

const virtual = /^(?:docker|virbr|veth|br-|cni|flannel|cali|tun|tap|tailscale|wg|kube|weave|lxc|podman)/;
const wireless = /^(?:wl|wlan|wlp|wifi)/;
const linkLocal = /^(?:169\.254\.|fe80:)/i;

/** Interfaces on which hosts meet: their names, and those that other hosts cannot reach. */
function interfaces(model: LogModel): LogFinding[] {
  const used = model.processes.flatMap(({ bootstrap, host }) => (bootstrap === undefined ? [] : [{ ...bootstrap, host }]));
  const hosts = new Set(used.map(({ host }) => host));
  if (hosts.size < 2 || hasEnded(model) || isInitialised(model)) return [];
  const odd = used.find(({ name, address }) => virtual.test(name) || wireless.test(name) || linkLocal.test(address));
  if (odd === undefined) return [];
  const why = linkLocal.test(odd.address)
    ? `${odd.address} is a link-local address`
    : virtual.test(odd.name)
      ? 'a virtual interface of its own host'
      : 'a wireless interface';
  return [
    {
      code: 'interface-virtual',
      severity: 'error',
      kind: 'failure',
      explains: ['connect-failed', 'connect-retry', 'init-unfinished', 'remote-closed', 'interface-wrong', 'calls-failed'],
      problem: `${odd.host} meets the others over ${odd.name} (${odd.address}): ${why}, which they may not reach`,
      cause: 'NCCL takes the first interface that is up, unless NCCL_SOCKET_IFNAME names another',
      remedy: 'NCCL_SOCKET_IFNAME=<the interface that all hosts share>, the same pattern on all hosts; `ip -br addr` lists them',
      places: [odd.place],
    },
  ];
}

/** A pattern of NCCL_SOCKET_IFNAME that the chosen interface does not answer. */
function unmatched(model: LogModel): LogFinding[] {
  if (isInitialised(model)) return [];
  for (const process of model.processes) {
    const setting = process.environment.get('NCCL_SOCKET_IFNAME');
    if (setting === undefined || process.bootstrap === undefined) continue;
    const { name } = process.bootstrap;
    if (isNamed(setting.value, name)) continue;
    return [
      {
        code: 'interface-unmatched',
        severity: 'warning',
        kind: 'failure',
        explains: ['connect-failed', 'connect-retry', 'init-unfinished', 'interface-virtual', 'interface-loopback'],
        problem: `NCCL_SOCKET_IFNAME=${setting.value}, but ${process.host} meets over ${name}`,
        cause: 'no interface of this host has such a name, or it is not up; another host may have one',
        remedy:
          '`ip -br addr` on every host; a pattern that fits all of them (prefixes, separated by commas; =name for one exactly, ^name to exclude)',
        places: [setting.place, process.bootstrap.place],
      },
    ];
  }
  return unmatchedOnHost(model);
}

/** The same where no process says it, by the interfaces of a host. */
function unmatchedOnHost(model: LogModel): LogFinding[] {
  const settings = [
    ...outputsOf(model, 'env').map(({ facts, host }) => ({ host, value: facts.variables.get('NCCL_SOCKET_IFNAME')?.value })),
    ...model.processes.map(({ environment, host }) => ({ host, value: environment.get('NCCL_SOCKET_IFNAME')?.value })),
  ].filter(({ value }) => value !== undefined);
  for (const { facts, host, place } of outputsOf(model, 'ip')) {
    const { value } = settings.find((setting) => setting.host === host) ?? settings[0] ?? {};
    const names = facts.interfaces.map(({ name }) => name);
    if (value === undefined || names.some((name) => isNamed(value, name))) continue;
    return [
      {
        code: 'interface-unmatched',
        severity: 'error',
        kind: 'fault',
        explains: ['connect-failed', 'connect-retry', 'init-unfinished', 'nccl-unhandled-system', 'remote-closed'],
        problem: `NCCL_SOCKET_IFNAME=${value} names no interface of ${host === '' ? 'this host' : host}, which has ${names.slice(0, 6).join(', ')}`,
        cause: 'interfaces have other names on each host, and one value is given to all',
        remedy:
          'NCCL_SOCKET_IFNAME=<prefixes that fit all hosts, separated by commas>, or a value for each host in /etc/nccl.conf; `ip -br addr` lists the names',
        places: [place],
      },
    ];
  }
  return [];
}

/** True if the name answers a list of prefixes, `=exact` names or `^excluded` ones. */
function isNamed(pattern: string, name: string): boolean {
  const isExcluding = pattern.startsWith('^');
  const rest = isExcluding ? pattern.slice(1) : pattern;
  const isExact = rest.startsWith('=');
  const parts = (isExact ? rest.slice(1) : rest).split(',').map((part) => part.split(':', 1)[0] ?? '');
  const answers = parts.some((part) => (isExact ? name === part : name.startsWith(part)));
  return answers !== isExcluding;
}

/** Findings beside which undocumented variables are suspects. */
const suspected: ReadonlySet<LogFindingCode> = new Set<LogFindingCode>([
  'result-wrong',
  'exit-crash',
  'cuda-illegal-access',
  'cuda-generic',
  'cuda-invalid',
  'xid-kernel',
  'nccl-invalid',
  'nccl-unhandled-cuda',
  'nccl-unhandled-system',
  'nccl-warning',
  'ib-local-protection',
  'ib-remote-access',
]);

/** Names undocumented variables that are in force beside wrong results and crashes. */
export function besideVariables(findings: readonly LogFinding[], model: LogModel): LogFinding[] {
  const names = undocumented(model);
  if (names.length === 0) return [...findings];
  return findings.map((finding) =>
    suspected.has(finding.code) && finding.severity !== 'info'
      ? {
          ...finding,
          cause: `${finding.cause}; beside it ${names.slice(0, 6).join(', ')} ${names.length === 1 ? 'is' : 'are'} set, which NCCL does not document`,
          remedy: `unset ${names
            .slice(0, 6)
            .map((name) => name.replace(/=.*$/, ''))
            .join(', ')} first; ${finding.remedy}`,
        }
      : finding,
  );
}

function undocumented(model: LogModel): string[] {
  const found = new Map<string, string>();
  const add = (name: string, value: string) => {
    if (/^NCCL_[A-Z0-9_]+$/.test(name) && !documentedVariables.has(name) && !harmless.has(name)) found.set(name, value);
  };
  for (const { environment } of model.processes) for (const [name, { value }] of environment) add(name, value);
  for (const { facts } of outputsOf(model, 'env')) for (const [name, { value }] of facts.variables) add(name, value);
  return [...found].map(([name, value]) => `${name}=${value}`);
}

/** Variables of images and launchers that NCCL itself does not read, or that name a meeting point. */
const harmless: ReadonlySet<string> = new Set([
  'NCCL_VERSION',
  'NCCL_COMM_ID',
  'NCCL_HOME',
  'NCCL_ROOT',
  'NCCL_LIBRARY',
  'NCCL_LIB_DIR',
  'NCCL_INCLUDE_DIR',
  'NCCL_ASYNC_ERROR_HANDLING',
  'NCCL_BLOCKING_WAIT',
  'NCCL_DESYNC_DEBUG',
  'NCCL_MULTI_RANK_GPU_ENABLE',
  'NCCL_TUNER_CONFIG_PATH',
]);
