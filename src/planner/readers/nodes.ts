import { plainText, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

/** Nodes in the words of a scheduler or cloud. */
export interface NodeList {
  readonly nodes: readonly NodeClaim[];
}

/** Nodes of one kind, by names. */
export interface NodeClaim {
  /** Names; empty where there is none. */
  readonly names: readonly string[];
  /** Number of nodes where it is said without names: options of a job. */
  readonly nodes?: number;
  /** `NVIDIA-H100-80GB-HBM3`, `h100`; undefined where unknown. */
  readonly gpu: string | undefined;
  /** GPUs of a node. */
  readonly count: number | undefined;
  /** Names of the machine: `p5.48xlarge`, `NVIDIA-DGX-H100`. */
  readonly products: readonly string[];
  readonly place: TextPlace;
}

type Growing = { -readonly [Key in keyof NodeClaim]: NodeClaim[Key] } & { names: string[]; products: string[] };

function newClaim(place: TextPlace, names: string[] = []): Growing {
  return { names, gpu: undefined, count: undefined, products: [], place };
}

/** Most nodes that a range names. */
const MOST_NODES = 4096;

/** `gpu[01-03,7],login` as names. */
export function expandNodes(text: string): string[] {
  const names: string[] = [];
  for (const [part] of text.matchAll(/[^,[\s]+(?:\[[\d,-]*\])?[^,[\s]*/g)) {
    const [, before = '', ranges, after = ''] = /^([^[]*)\[([\d,-]+)\](.*)$/.exec(part) ?? [];
    if (ranges === undefined) {
      names.push(part);
      continue;
    }
    for (const range of ranges.split(',')) {
      const [first = '', last = first] = range.split('-');
      for (let number = Number(first); number <= Number(last) && names.length < MOST_NODES; number++)
        names.push(`${before}${String(number).padStart(first.length, '0')}${after}`);
    }
  }
  return names;
}

/** Slurm: `scontrol show node`, `sinfo`, `slurm.conf`, `gres.conf`, and options of jobs. */
export const slurmNodes: ToolFormat<'slurm', NodeList> = {
  name: 'slurm',
  commands: ['scontrol show node', "sinfo -o '%N %G'"],
  needles: ['nodename=', 'gres=', 'gpu:', 'name=gpu', '#sbatch'],
  begins:
    /^#SBATCH\s+-|\bNodeName=\S|\b[Gg]res=gpu\b|^\s*\S{1,200}\s+(?:\S+\s+)*gpu:[\w.:-]*\d|^\s*Name=gpu\b|^\s*gpu:[\w.-]+:\d+/,
  holds: /^#SBATCH\b|\bNodeName=|\b[Gg]res=|\bgpu:|^\s*Name=gpu|^\s+\w+=|gres\/gpu/,
  patience: 5,
  parse: parseSlurm,
};

function parseSlurm(lines: readonly ToolLine[]): NodeList | undefined {
  const nodes: Growing[] = [];
  let node: Growing | undefined;
  let job: Growing | undefined;
  for (const { text: raw, place } of lines) {
    const text = plainText(raw);
    if (text.startsWith('#SBATCH')) {
      nodes.push(...(job === undefined ? [(job = newClaim(place))] : []));
      readOptions(text, job);
      continue;
    }
    const [, list] = /\bNodeName=(\S+)/.exec(text) ?? [];
    const isGresConf = /\bName=gpu\b/.test(text);
    const [, listed] = /^\s*([\w.[\],-]+)\s.*\bgpu:/.exec(text) ?? [];
    if (list !== undefined) node = newClaim(place, expandNodes(list));
    else if (listed !== undefined && !/[Gg]res=/.test(text)) node = newClaim(place, expandNodes(listed));
    if (node === undefined || (isGresConf && list === undefined)) node = newClaim(place);
    if (!nodes.includes(node)) nodes.push(node);
    readGres(text, node);
    const [, type] = /\bInstanceType=(\S+)/.exec(text) ?? [];
    if (type !== undefined) node.products.push(type);
    if (isGresConf) readGresConf(text, node);
  }
  const known = nodes.filter(({ gpu, count, products }) => gpu !== undefined || count !== undefined || products.length > 0);
  return known.length === 0 ? undefined : { nodes: known };
}

/** Options of a job: `--nodes=4`, `-N 2`, `--gres=gpu:h100:8`, `--gpus-per-node=a100:4`, `--gpus=16`, `--nodelist=n[1-4]`. */
function readOptions(text: string, job: Growing): void {
  const option = (names: string) => new RegExp(`\\s(?:${names})[=\\s]\\s*(\\S+)`).exec(text)?.[1];
  const nodes = /^\d{1,4}/.exec(option('--nodes|-N') ?? '')?.[0];
  const list = option('--nodelist|-w');
  const perNode = option('--gpus-per-node');
  const all = option('--gpus|-G');
  if (nodes !== undefined) job.nodes = Number(nodes);
  if (list !== undefined) job.names.push(...expandNodes(list));
  readGres(perNode === undefined ? text : ` gpu:${perNode}`, job);
  const [, type, count] = /^(?:([A-Za-z][\w.-]*):)?(\d+)$/.exec(all ?? '') ?? [];
  job.gpu ??= type;
  if (count !== undefined && job.nodes !== undefined && job.nodes > 0) job.count ??= Number(count) / job.nodes;
}

/** `Gres=gpu:h100:8(S:0-1)`, `gpu:8`, `CfgTRES=…,gres/gpu:h100=8`. */
function readGres(text: string, node: Growing): void {
  const [, type, count] = /\bgpu:(?:([A-Za-z][\w.-]*):)?(\d+)(?!\d*[:.]\d)/.exec(text) ?? [];
  const [, tresType, tresCount] = /gres\/gpu(?::([\w.-]+))?=(\d+)/.exec(text) ?? [];
  node.gpu ??= type ?? tresType;
  const number = count ?? tresCount;
  if (number !== undefined) node.count ??= Number(number);
}

function readGresConf(text: string, node: Growing): void {
  node.gpu ??= /\bType=([\w.-]+)/.exec(text)?.[1];
  const [, count] = /\bCount=(\d+)/.exec(text) ?? [];
  const [, first, last] = /\bFile=\S*?\[(\d+)-(\d+)\]/.exec(text) ?? [];
  if (count !== undefined) node.count ??= Number(count);
  else if (first !== undefined) node.count ??= Number(last) - Number(first) + 1;
}

/** Kubernetes: labels and capacity of nodes (`kubectl describe node`, `get node --show-labels`, `-o yaml`, `-o json`). */
export const nodeLabels: ToolFormat<'kubernetes', NodeList> = {
  name: 'kubernetes',
  commands: ['kubectl describe node', 'kubectl get node --show-labels', 'kubectl get node -o yaml'],
  needles: ['nvidia.com/gpu', 'kubernetes.io/', 'kind: node', '"kind": "node"'],
  begins:
    /\bnvidia\.com\/(?:gpu\b|gpu\.(?:product|count|machine))|(?:node|beta)\.kubernetes\.io\/instance-type|kubernetes\.io\/hostname|^\s*"?kind"?: "?Node\b/,
  holds: /[\w.-]+\/[\w.-]+["']?\s*[=:]|^\s*(?:Name|- ?apiVersion|kind|"?kind"?|"?name"?|Hostname|Labels|Capacity|Allocatable):?/,
  patience: 200,
  parse: parseLabels,
};

const label =
  /\b(nvidia\.com\/gpu\.product|nvidia\.com\/gpu\.count|nvidia\.com\/gpu\.machine|nvidia\.com\/gpu|node\.kubernetes\.io\/instance-type|beta\.kubernetes\.io\/instance-type|kubernetes\.io\/hostname)["']?\s*[=:]\s*["']?([^"',\s]+)/g;

function parseLabels(lines: readonly ToolLine[]): NodeList | undefined {
  const nodes: Growing[] = [];
  for (const { text, place } of lines) {
    const isNew = /^\s*Name:\s+\S|^\s*(?:- )?"?kind"?: "?Node\b/.test(text);
    for (const [, key = '', value = ''] of text.matchAll(label)) {
      let node = nodes.at(-1);
      if (node === undefined || isRepeated(node, key, value)) nodes.push((node = newClaim(place)));
      readLabel(node, key, value);
    }
    const [, name] = /^\s*Name:\s+([\w.-]+)\s*$/.exec(text) ?? [];
    const last = nodes.at(-1);
    if (isNew && (last === undefined || hasFacts(last))) nodes.push(newClaim(place));
    if (name !== undefined) nodes.at(-1)?.names.push(name);
  }
  const known = nodes.filter(hasFacts);
  return known.length === 0 ? undefined : { nodes: known };
}

function hasFacts({ gpu, count, products }: NodeClaim): boolean {
  return gpu !== undefined || count !== undefined || products.length > 0;
}

/** True for a second value of the same label, which belongs to the next node. */
function isRepeated(node: NodeClaim, key: string, value: string): boolean {
  if (key === 'kubernetes.io/hostname') return node.names.length > 0 && !node.names.includes(value);
  return key === 'nvidia.com/gpu.product' && node.gpu !== undefined && node.gpu !== value;
}

function readLabel(node: Growing, key: string, value: string): void {
  if (key === 'kubernetes.io/hostname') {
    if (!node.names.includes(value)) node.names.push(value);
  } else if (key === 'nvidia.com/gpu.product') node.gpu ??= value;
  else if (key === 'nvidia.com/gpu.count' || key === 'nvidia.com/gpu') {
    if (/^\d+$/.test(value)) node.count ??= Number(value);
  } else if (!node.products.includes(value)) node.products.push(value);
}

/** Names of machines: a line of dmidecode, of a cloud's metadata, or the name alone. */
export const machineNames: ToolFormat<'product', NodeList> = {
  name: 'product',
  commands: ['dmidecode -t system', 'cat /sys/class/dmi/id/product_name'],
  needles: ['dgx', 'hgx', 'product name:', 'instance', 'vmsize', 'machinetype', 'shape', 'nvl72', 'xlarge', 'standard_n', 'gpu'],
  begins:
    /^\s*(?:[\w -]*Product Name|product_name):\s*\S|^\s*["']?(?:instance-?_?type|vm-?_?size|machine-?_?type|shape)["']?\s*:\s*\S|^\s*(?:\d{1,4} ?[x×] ?)?(?:NVIDIA[ -])?(?:DGX|HGX)\b[\w ,.+-]{0,40}$|^\s*(?:p\d\w*(?:-\w+)?\.\d+xlarge|Standard_N\w+|a\d\w?-\w+gpu-\d+g|BM\.GPU[\w.]+)\s*$/i,
  holds: /\S/,
  patience: 0,
  parse: ([line]) => {
    if (line === undefined) return undefined;
    const [, value = line.text] =
      /^\s*["']?(?:[\w -]*Product Name|product_name|instance-?_?type|vm-?_?size|machine-?_?type|shape)["']?\s*:\s*["']?([^"',]+)/i.exec(
        line.text,
      ) ?? [];
    const name = value.trim().replace(/^.*\//, '');
    return name === '' ? undefined : { nodes: [{ ...newClaim(line.place), products: [name] }] };
  },
};
