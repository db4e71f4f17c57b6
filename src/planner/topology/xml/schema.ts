/**
 * Elements and attributes that NCCL 2.30.7 reads or writes, with their places. All others are kept in the tree and reported;
 * walks of the tree skip them, as NCCL does.
 *
 *     system ── cpu ─┬─ pci ─┬─ pci …                    graphs ── graph ── channel ─┬─ net
 *                    │       ├─ gpu ─┬─ nvlink                                       └─ gpu
 *                    │       │       └─ c2c
 *                    │       ├─ nic ── net
 *                    │       └─ pcilink
 *                    └─ nic ── net
 */
export const rootNames = ['system', 'graphs'] as const;

/** Children that NCCL's parser looks for below an element; it skips elements of other names with all below them. */
const childNames: Readonly<Record<string, readonly string[]>> = {
  system: ['cpu'],
  cpu: ['pci', 'nic'],
  pci: ['pci', 'gpu', 'nic', 'pcilink'],
  gpu: ['nvlink', 'c2c'],
  nic: ['net'],
  graphs: ['graph'],
  graph: ['channel'],
  channel: ['net', 'gpu'],
};

/** Attributes of a topology's elements. `keep` is NCCL's own mark for trimming and never in a finished dump. */
const topologyAttributes: Readonly<Record<string, readonly string[]>> = {
  system: ['version', 'name'],
  cpu: ['host_hash', 'numaid', 'affinity', 'arch', 'vendor', 'familyid', 'modelid'],
  pci: ['busid', 'class', 'vendor', 'device', 'subsystem_vendor', 'subsystem_device', 'link_speed', 'link_width'],
  gpu: ['dev', 'sm', 'rank', 'gdr', 'mlopart', 'keep'],
  nvlink: ['target', 'count', 'tclass'],
  c2c: ['bw', 'count'],
  pcilink: ['target'],
  nic: [],
  net: [
    'name',
    'dev',
    'latency',
    'speed',
    'port',
    'guid',
    'maxconn',
    'gdr',
    'keep',
    'coll',
    'net',
    'gin',
    'rma',
    'rail',
    'plane',
  ],
};

const graphAttributes: Readonly<Record<string, readonly string[]>> = {
  graphs: ['version', 'name'],
  graph: [
    'id',
    'pattern',
    'crossnic',
    'nchannels',
    'speedintra',
    'speedinter',
    'latencyinter',
    'typeintra',
    'typeinter',
    'samechannels',
  ],
  channel: [],
  net: ['dev'],
  gpu: ['dev', 'rank'],
};

/** Limits of NCCL's own parser (`MAX_STR_LEN`, `MAX_ATTR_COUNT`, `MAX_SUBS`, `NCCL_*_XML_MAX_NODES`). */
export const ncclLimits = {
  /** Characters of an element's name or an attribute's value. */
  valueLength: 253,
  attributes: 16,
  children: 640,
  /** Elements in a file that NCCL can load: it stops before it has read its 256th. */
  elements: { system: 255, graphs: 65_535 },
} as const;

/** True if NCCL's parser accepts an element of this name there; the root must be `system` or `graphs`. */
export function isKnownElement(name: string, parentName: string | undefined): boolean {
  if (parentName === undefined) return (rootNames as readonly string[]).includes(name);
  return childNames[parentName]?.includes(name) ?? false;
}

/** True if NCCL reads or writes this attribute in the format of `rootName`. */
export function isKnownAttribute(attribute: string, elementName: string, rootName: string): boolean {
  return attributeNames(elementName, rootName).includes(attribute);
}

/** NCCL's attributes of an element. */
export function attributeNames(elementName: string, rootName: string): readonly string[] {
  return (rootName === 'graphs' ? graphAttributes : topologyAttributes)[elementName] ?? [];
}

/** The names that may stand below an element. */
export function knownChildren(elementName: string): readonly string[] {
  return childNames[elementName] ?? [];
}
