import { counted } from '../../../../counted.js';
import { type CopyCase, type CopyTest, pairsOf } from '../../../readers/copy-test.js';
import { nvLinkGBps } from '../../../topology/bandwidths.js';
import { gpuOfProduct } from '../../../topology/catalogue/products.js';
import type { LogFinding } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { onHost, outputsOf } from './outputs.js';

/** A copy below this share of the usual one is slow: half of the lanes, or a generation less, is 0.5. */
const SLOW_SHARE = 0.6;
/** NVLinks carry at least this share of their rate in one copy. */
const NVLINK_SHARE = 0.5;

/** Copies of GPUs as `nvbandwidth` or `nvloom_cli` measured them: wrong data, slow links, no P2P. */
export function checkCopies(model: LogModel): LogFinding[] {
  return outputsOf(model, 'nvbandwidth').flatMap(({ facts, ...output }) => {
    const on = onHost(output);
    const pairs = facts.cases.filter(({ kind }) => kind === 'pair');
    return [
      ...facts.cases.filter(({ isWrong }) => isWrong).map((test) => wrongData(test, on)),
      ...firstOf(facts.cases.filter(({ kind }) => kind === 'host').map((test) => slowToHost(test, on))),
      ...firstOf(pairs.map((test) => slowBetween(test, facts, on))),
      ...firstOf(pairs.map((test) => withoutPeers(test, facts, on))),
    ];
  });
}

/** Tests of one kind show the same fault several times. */
function firstOf(found: readonly (LogFinding | undefined)[]): LogFinding[] {
  return found.filter((finding) => finding !== undefined).slice(0, 1);
}

function wrongData({ name, place }: CopyCase, on: string): LogFinding {
  return {
    code: 'result-wrong',
    severity: 'error',
    kind: 'fault',
    problem: `nvbandwidth${on} read back other data than it had written (${name})`,
    cause:
      'a GPU, an NVLink or the PCIe path between GPUs changes data (an IOMMU or ACS does this to P2P), or the program was built for another CUDA toolkit',
    remedy:
      'run it again with --bufferSize 64 and as …_write_ce; then `nvidia-smi -q -d ECC`, `lspci -vvv` (ACSCtl), dcgmi diag -r 3',
    places: [place],
  };
}

function slowToHost({ columns, gbps, place, name }: CopyCase, on: string): LogFinding | undefined {
  const best = new Map(
    columns.map((gpu) => [gpu, Math.max(0, ...[...gbps].flatMap(([cell, rate]) => (cell.endsWith(` ${gpu}`) ? [rate] : [])))]),
  );
  const usual = median([...best.values()]);
  const slow = [...best].filter(([, rate]) => rate > 0 && rate < SLOW_SHARE * usual);
  const [first] = slow;
  if (first === undefined) return undefined;
  return {
    code: 'pcie-slow',
    severity: 'warning',
    kind: 'cost',
    explains: ['bandwidth-low'],
    problem: `GPU ${slow.map(([gpu]) => gpu).join(', ')}${on} reaches ${first[1].toFixed(1)} GB/s to its host, others ${usual.toFixed(1)} (${name})`,
    cause:
      'its PCIe link has fewer lanes or a lower generation than those of the others, or the process ran far from that GPU’s memory',
    remedy: '`nvidia-smi -q` (PCIe Generation, Link Width) under load and `lspci -vvv` (LnkSta); reseat the card',
    places: [place],
  };
}

/** Pairs below the others, where all GPUs have the same NVLinks to switches; and NVLinks that no pair uses. */
function slowBetween(test: CopyCase, { products }: CopyTest, on: string): LogFinding | undefined {
  const models = [...new Set(products.values())].map(gpuOfProduct);
  const [gpu] = models;
  if (gpu?.nvlink !== 'switch' || models.length > 1) return undefined;
  const { name, place } = test;
  const rates = pairsOf(test);
  const usual = median([...rates.values()]);
  const linkGBps = gpu.nvlinks * nvLinkGBps(gpu.sm);
  if (usual > 0 && usual < NVLINK_SHARE * linkGBps)
    return {
      code: 'nvlink-degraded',
      severity: 'error',
      kind: 'fault',
      explains: ['bandwidth-low'],
      problem: `copies between GPUs${on} reach ${usual.toFixed(1)} GB/s, ${gpu.nvlinks} NVLinks carry about ${Math.round(linkGBps)} (${name})`,
      cause: 'the GPUs copy over PCIe, or over part of their NVLinks: the fabric manager does not run, or NVLinks are down',
      remedy: '`nvidia-smi nvlink -s`, `nvidia-smi -q` (Fabric: State, Status), `systemctl status nvidia-fabricmanager`',
      places: [place],
    };
  const slow = [...rates].filter(([, rate]) => rate < SLOW_SHARE * usual).sort(([, a], [, b]) => a - b);
  const [worst] = slow;
  if (worst === undefined) return undefined;
  const [from = '', to = ''] = worst[0].split(' ');
  const common = [from, to].find((each) => slow.every(([pair]) => pair.split(' ').includes(each)));
  return {
    code: 'nvlink-degraded',
    severity: 'warning',
    kind: 'fault',
    explains: ['bandwidth-low'],
    problem: `GPU ${from} and ${to}${on} reach ${worst[1].toFixed(1)} GB/s, the usual pair ${usual.toFixed(1)} (${name}; ${counted(slow.length, 'slow cell')}${common === undefined || slow.length === 1 ? '' : `, all with GPU ${common}`})`,
    cause: 'NVLinks of a GPU or ports of an NVSwitch are down or report errors',
    remedy: '`nvidia-smi nvlink -s` and `nvidia-smi nvlink -e` of these GPUs; reset them',
    places: [place],
  };
}

function withoutPeers({ isWaived, name, place }: CopyCase, { products, cases }: CopyTest, on: string): LogFinding | undefined {
  const nGpus = Math.max(products.size, ...cases.map(({ columns }) => columns.length));
  if (!isWaived || nGpus < 2) return undefined;
  return {
    code: 'p2p-unsupported',
    severity: 'info',
    kind: 'note',
    explains: ['shm-despite-nvlink'],
    problem: `no pair of the ${nGpus} GPUs${on} has P2P (nvbandwidth left out ${name}): their data goes through the host's memory`,
    cause: 'the cards or the driver do not support it (GeForce), or ACS or a VM forbids it',
    remedy: '`nvidia-smi topo -p2p r` says which',
    places: [place],
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
