import { InputError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import { rulesOf } from '../../versions/rules.js';
import type { System } from '../system.js';
import { isOfRccl } from '../xml/rccl.js';
import { describeElement, type XmlElement } from '../xml/tree.js';
import { elementError } from './attributes.js';
import { Draft } from './draft.js';
import { flattenBroadcomSwitches } from './flatten-switches.js';
import { addC2c, addNvLinks, addPciLinks, connectCpus, sortPciTrees } from './interconnect.js';
import { addCpu, type Build } from './read-tree.js';

/** A note for the user about something that NCCL accepts silently in an XML. */
export interface SystemNote {
  readonly message: string;
  /** 1-based; 0 where the element was in no text. */
  readonly line: number;
}

/** Options of a system. */
export interface BuildOptions {
  readonly parameters: Parameters;
  /** The `host_hash` of the host that the system is for; the host of the first CPU if not given. */
  readonly hostHash?: bigint;
  readonly onNote?: (note: SystemNote) => void;
}

/**
 * Builds the graph of the machine that a `<system>` describes, as NCCL does from the XML of a host or of an NVLink domain. All of
 * its elements count as in use: trim the others first.
 *
 * @throws InputError for everything that NCCL refuses (then `ncclResult` is what NCCL returns), and for a machine
 * without CPU or without a GPU in use.
 */
export function buildSystem(root: XmlElement, options: BuildOptions): System {
  if (root.name !== 'system') {
    throw elementError(root, 'a topology begins with <system version="1">; this is something else');
  }
  if (isOfRccl(root))
    throw new InputError(
      'CONTENT',
      'this is a topology of RCCL (AMD GPUs), which plans otherwise than NCCL: it is not supported',
      { line: root.line },
    );
  const draft = new Draft();
  const build: Build = {
    draft,
    hostHashes: [],
    splitGpus: options.parameters.splitMloPart !== 0,
    rules: rulesOf(options.parameters),
    note: (element, message) => options.onNote?.({ message: `${describeElement(element)}: ${message}`, line: element.line }),
  };

  for (const child of root.children) {
    if (child.name === 'cpu') addCpu(build, child);
  }
  if (build.hostHashes.length > 1 && !build.rules.nvLinkDomains) {
    throw elementError(
      root,
      `it describes ${build.hostHashes.length} hosts, and this version of NCCL knows no NVLink between hosts: give each host a file of its own, or take 2.21.5 or newer`,
    );
  }
  const systemId = ownSystemId(build, root, options.hostHash);
  addNvLinks(build, root);
  addC2c(build, root);
  addPciLinks(build, root);
  flattenBroadcomSwitches(draft, root, build.rules);
  connectCpus(build, root);
  sortPciTrees(draft, root);

  const system = draft.toSystem(build.hostHashes, systemId);
  if (system.gpus.length === 0) throw elementError(root, 'no GPU is in use: a <gpu> needs a rank');
  return system;
}

/** Gives all CPUs the same `host_hash`, as NCCL does with a user's file, which always describes one host. */
export function assignHost(root: XmlElement, hostHash: bigint): void {
  for (const child of root.children) {
    if (child.name === 'cpu') child.attributes.set('host_hash', `0x${hostHash.toString(16)}`);
  }
}

function ownSystemId(build: Build, root: XmlElement, hostHash: bigint | undefined): number {
  if (build.hostHashes.length === 0) throw elementError(root, 'no <cpu> in it: every device hangs below one');
  if (hostHash === undefined) return 0;
  const systemId = build.hostHashes.indexOf(hostHash);
  if (systemId >= 0) return systemId;
  const known = build.hostHashes.map((hash) => `0x${hash.toString(16)}`).join(', ');
  throw new InputError('CONTENT', `no <cpu> has host_hash 0x${hostHash.toString(16)}; the file has ${known}`, { ncclResult: 4 });
}
