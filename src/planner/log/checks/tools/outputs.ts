import type { AnyToolOutput } from '../../../readers/formats.js';
import type { LogFindingCode } from '../../rules/codes.js';
import type { LogModel } from '../../job/model.js';
import { hasEnded } from '../../job/outcome.js';
import type { LogFinding } from '../finding.js';

type NameOf = AnyToolOutput['tool'];
export type OutputOf<Name extends NameOf> = Extract<AnyToolOutput, { readonly tool: Name }>;

/** The outputs of one tool. */
export function outputsOf<Name extends NameOf>({ tools }: Pick<LogModel, 'tools'>, name: Name): OutputOf<Name>[] {
  return tools.filter((output): output is OutputOf<Name> => output.tool === name);
}

/** ` on node1`, where a heading names the host. */
export function onHost({ host }: { readonly host: string }): string {
  return host === '' ? '' : ` on ${host}`;
}

/** True if a line of the log has one of the findings. */
export function isSeen({ hits }: Pick<LogModel, 'hits'>, ...codes: readonly LogFindingCode[]): boolean {
  return hits.some(({ rule }) => codes.includes(rule.code));
}

/**
 * Devices and interfaces that the log uses on a host (on any where it is not known), RDMA devices with their interfaces; empty
 * where it names none.
 */
export function usedDevices(model: LogModel, host: string): ReadonlySet<string> {
  const own = model.processes.filter((process) => process.host === host);
  const used = new Set<string>();
  for (const { devices, bootstrap } of own.length > 0 ? own : model.processes) {
    for (const { devices: list } of devices.values()) for (const { name } of list) used.add(name.split(':', 1)[0] ?? name);
    if (bootstrap !== undefined) used.add(bootstrap.name);
  }
  for (const { facts } of outputsOf(model, 'ports'))
    for (const { device, netdev } of facts.ports) if (netdev !== undefined && used.has(device)) used.add(netdev);
  return used;
}

/** The part of devices that are down, and what follows from them: they are to blame only for a job that needs them. */
export function partOfDown(
  model: LogModel,
  host: string,
  names: readonly string[],
  isOutlier: boolean,
  explains: readonly LogFindingCode[],
): Pick<LogFinding, 'severity' | 'kind' | 'explains'> {
  if (hasEnded(model)) return { severity: 'info', kind: 'note' };
  const used = usedDevices(model, host);
  if (names.some((name) => used.has(name))) return { severity: 'warning', kind: 'fault', explains };
  return used.size > 0
    ? { severity: 'warning', kind: 'risk' }
    : { severity: 'warning', kind: isOutlier ? 'fault' : 'risk', explains };
}
