import { InputError } from '../../../errors.js';
import type { XmlElement } from '../../topology/xml/tree.js';
import { readLine, withMarker, withoutColours } from '../lines/line.js';
import { loggedTopology } from './logged-topology.js';
import { ProcessTracker } from '../job/processes.js';
import { rcclNeedles } from '../lines/rccl.js';
import { SystemBlocks } from '../job/system-block.js';
import { unwrapped } from '../lines/unwrap.js';

/**
 * The first machine of a text that is a log with one; undefined where it is none. Every command that takes a topology
 * loads this file, so it goes without the full reader of logs and its rules.
 *
 * @throws InputError for a log of RCCL
 */
export function topologyInLog(text: string): XmlElement | undefined {
  if (!text.includes('=== System')) return undefined;
  const lines = text.split(/\r?\n/).flatMap((line) => unwrapped(line) ?? [line]);
  if (lines.some(isRcclLine))
    throw new InputError('CONTENT', 'this is the log of RCCL (AMD), which plans otherwise than NCCL: it is not supported');
  for (const machine of machinesIn(lines)) {
    const root = loggedTopology(machine);
    if (root !== undefined) return root;
  }
  return undefined;
}

function isRcclLine(line: string): boolean {
  const text = line.toLowerCase();
  return rcclNeedles.some((needle) => text.includes(needle));
}

function machinesIn(lines: readonly string[]) {
  const processes = new ProcessTracker();
  const systems = new SystemBlocks();
  for (const [index, text] of lines.entries()) {
    const place = { file: 0, line: index + 1 };
    for (const { host, pid, tid, level, message, torn } of readLine(withMarker(withoutColours(text)), processes).lines) {
      const process = processes.find(host, pid, place);
      if (process !== undefined && level === 'INFO') systems.read(message, process.host, `${host}:${pid}:${tid}`, torn, place);
    }
  }
  return systems.list();
}
