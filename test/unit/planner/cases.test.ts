import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../src/planner/parameters.js';
import { checkPlan } from '../../../src/planner/plan/checks/check-plan.js';
import { prepareCluster } from '../../../src/planner/plan/cluster.js';
import { overviewOf } from '../../../src/planner/plan/overview/overview.js';
import { limitText } from '../../../src/planner/plan/overview/format.js';
import { applyOverrides } from '../../../src/planner/plan/overrides.js';
import { planPrepared } from '../../../src/planner/plan/plan.js';
import { predictCall, simulatorOf } from '../../../src/planner/plan/prediction.js';
import { completeTopology, hasEvidence, type NamedText, parseHosts } from '../../../src/cli/topo/input.js';
import { gpuOfProduct } from '../../../src/planner/topology/catalogue/products.js';
import { refusesPciP2p } from '../../../src/planner/topology/build/geforce.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { diagnose } from '../../../src/planner/topology/doctor/diagnose.js';
import { parseXml } from '../../../src/planner/topology/xml/parse.js';
import type { XmlElement } from '../../../src/planner/topology/xml/tree.js';
import { tune } from '../../../src/planner/tuning/tune.js';
import { l40sBox, l40sEnvironment } from '../../../testing/calibration/boxes.js';

// Machines and measurements of public threads; each test names its source.

const file = (name: string) => parseXml(readFileSync(`test/unit/planner/cases/${name}`, 'utf8')).root;

function planned(root: XmlElement, count: number, environment: Readonly<Record<string, string>> = {}, nccl?: string) {
  const { parameters } = parametersFromEnvironment(environment, nccl);
  const prepared = prepareCluster({ hosts: [{ machine: root, count }] }, parameters);
  return { prepared, parameters, plan: planPrepared(prepared, parameters) };
}

function busGBps(
  root: XmlElement,
  count: number,
  bytes: number,
  nccl?: string,
  environment: Readonly<Record<string, string>> = {},
  collective: 'AllReduce' | 'AllToAll' = 'AllReduce',
): number {
  const { prepared, parameters, plan } = planned(root, count, environment, nccl);
  return predictCall(simulatorOf(prepared, parameters, plan), collective, bytes)[0]?.busGBps ?? NaN;
}

function overview(root: XmlElement, count: number, environment: Readonly<Record<string, string>> = {}, nccl?: string) {
  const { prepared, parameters, plan } = planned(root, count, environment, nccl);
  const cluster = { hosts: [{ machine: root, count }] };
  const tuning = tune(plan, parameters);
  return overviewOf({ title: '', cluster, prepared, plan, parameters, environment, tuning, sizes: [2 ** 30] });
}

/** A finding of a plan of hosts, with its loss. */
function finding(roots: readonly XmlElement[], code: string, environment: Readonly<Record<string, string>> = {}, nccl?: string) {
  const { parameters } = parametersFromEnvironment(environment, nccl);
  const cluster = { hosts: roots.map((root) => ({ machine: root, count: 1 })) };
  const prepared = prepareCluster(cluster, parameters);
  const plan = planPrepared(prepared, parameters);
  const all = checkPlan({ cluster, parameters, environment, prepared, plan, tuning: tune(plan, parameters), roots: new Map() });
  return all.find((each) => each.code === code);
}

it('p5.48xlarge with 32 EFA passes the limit of XML elements (NVIDIA/nccl#2160)', () => {
  for (const root of [file('p5-32nics.xml'), machine('aws-p5')])
    expect(diagnose(root).map(({ code }) => code)).toContain('xml-nodes');
});

it('Granite Rapids is taken for Sapphire Rapids (NVIDIA/nccl#2107)', () => {
  expect(diagnose(file('granite-rapids.xml'))).toMatchObject([{ code: 'cpu-misread', gbps: { is: 22, couldBe: 40 } }]);
});

it('eight RTX 4090 go through the CPU, at 5 GB/s (NVIDIA/nccl-tests#307)', () => {
  expect(planned(file('rtx4090.xml'), 1).plan.graphs.ring).toMatchObject({ nChannels: 1, bwIntra: 5 });
});

it('NCCL_MAX_CTAS bounds channels, and pairs take powers of two (NVIDIA/nccl#1598)', () => {
  const channels = (ctas: number) => {
    const { plan } = planned(applyOverrides(machine('dgx-h200'), { gpus: 4 }), 1, { NCCL_MAX_CTAS: String(ctas) });
    return [plan.nChannels, plan.p2p.nChannels];
  };
  expect([3, 5, 6].map(channels)).toEqual([
    [3, 4],
    [5, 8],
    [6, 8],
  ]);
});

it('16 GPUs of a rack are 16 ranks, of four trays', () => {
  const { plan } = planned(applyOverrides(machine('gb300-nvl72'), { gpus: 16 }), 1);
  expect(plan.nodes).toMatchObject({ nRanks: 16, nNodes: 1 });
});

it('16 GiB by NVLink SHARP come within 5 % of measurements, and two racks are slower than one', () => {
  const measured = [
    ['gb300-nvl8', 1, 842],
    ['gb300-nvl64', 1, 930],
    ['gb300-nvl64', 2, 738],
    ['dgx-b200', 1, 845],
  ] as const;
  for (const [name, racks, gbps] of measured)
    expect(Math.abs(busGBps(machine(name), racks, 2 ** 34, '2.28.7') / gbps - 1), `${racks} x ${name}`).toBeLessThan(0.05);
});

it('a tray of four GB300 comes within 5 % of its measurement, which had buffers of 16 MiB', () => {
  const gbps = busGBps(machine('gb300-tray'), 1, 2 ** 34, '2.28.7', { NCCL_BUFFSIZE: String(2 ** 24) });
  expect(Math.abs(gbps / 685.19 - 1)).toBeLessThan(0.05);
});

it('bonds that count as 200 Gb/s and carry 400 (NVIDIA/nccl-tests#321)', () => {
  const seen = parseXml(readFileSync('test/questions/machines/h20-bonds.xml', 'utf8')).root;
  const bonds = applyOverrides(seen, { nicCarriesMbps: 400_000 });
  const { plan } = planned(bonds, 2, {}, '2.26.5');
  expect([plan.nChannels, plan.p2p.nChannels, plan.p2p.channelsPerPeer]).toEqual([4, 4, 2]);
  // The rings and trees of the log.
  const ring = (channel: number) => {
    const first = (plan.ringOfChannel[channel] ?? 0) * 4;
    return plan.rings.order.slice(first, first + 4).join(' ');
  };
  expect([0, 1, 2, 3].map(ring)).toEqual(['0 3 2 1', '0 1 2 3', '0 3 2 1', '0 1 2 3']);
  const allToAll = (root: XmlElement, environment = {}) => busGBps(root, 2, 2 ** 30, '2.26.5', environment, 'AllToAll');
  expect(Math.abs(allToAll(bonds) / 50.2 - 1)).toBeLessThan(0.05);
  expect(allToAll(seen)).toBeLessThan(37);
  expect(allToAll(bonds, { NCCL_NCHANNELS_PER_NET_PEER: '4' })).toBeGreaterThan(1.4 * allToAll(bonds));
});

it('PXN leaves the search of Leonardo without a tree from 2.25 on (NVIDIA/nccl#1876)', () => {
  const channels = (nccl: string, environment = {}) => planned(file('leonardo.xml'), 2, environment, nccl).plan.nChannels;
  expect([channels('2.22.3'), channels('2.25.1'), channels('2.25.1', { NCCL_PXN_DISABLE: '1' })]).toEqual([8, 2, 8]);
  const algGBps = (nccl: string) => busGBps(file('leonardo.xml'), 2, 2 ** 30, nccl) / 1.75;
  expect(algGBps('2.22.3')).toBeGreaterThan(45);
  expect(Math.abs(algGBps('2.25.1') / 7 - 1)).toBeLessThan(0.05);
  expect(finding([file('leonardo.xml'), file('leonardo.xml')], 'search-failed', {}, '2.25.1')?.gbps?.couldBe).toBeGreaterThan(80);
});

it('the limit is what rings of the plan take, not those of the search', () => {
  const [host] = overview(file('leonardo.xml'), 2, {}, '2.27.3').hosts;
  if (host === undefined) throw new Error('no host');
  expect(limitText(host)).toContain('rings take 12 of 12 GB/s on 1, 12 GB/s in all; its search found 48 GB/s');
});

it('trees over two nodes carry more than the NIC (NVIDIA/nccl-tests#196)', () => {
  const oneNic = applyOverrides(machine('pcie-8-h100-pcie'), { nics: 1, nicSpeedMbps: 100_000 });
  expect(busGBps(oneNic, 2, 2 ** 34)).toBeGreaterThan(1.8 * 12.5);
  expect(busGBps(oneNic, 2, 2 ** 34, undefined, { NCCL_ALGO: 'Ring' })).toBeLessThan(12.5);
});

it('an A100 has no NVLink SHARP, in versions before 2.28, too (NVIDIA/nccl-tests#228)', () => {
  for (const [root, nodes, nccl] of [
    [machine('dgx-a100'), 1, '2.30.7'],
    [machine('dgx-a100'), 2, '2.27.7'],
    [file('leonardo.xml'), 2, '2.26.2'],
  ] as const)
    expect(overview(root, nodes, {}, nccl).uses.find(({ name }) => name === 'NVLS')).toMatchObject({
      used: 'no',
      text: 'takes NVSwitches and GPUs of sm 90',
    });
  const level = { NCCL_P2P_LEVEL: 'LOC' };
  expect(busGBps(machine('dgx-a100'), 1, 2 ** 30)).toBeGreaterThan(
    9 * busGBps(machine('dgx-a100'), 1, 2 ** 30, undefined, level),
  );
});

it('hosts with two and one usable NIC are named (NVIDIA/nccl#2428)', () => {
  const [two, one] = [2, 1].map((nics) => applyOverrides(machine('hgx-h20-8'), { gpus: 1, nics }));
  const uneven = finding([two!, one!], 'nic-counts-differ');
  expect(uneven?.consequence).toContain('a job can hang in its first calls');
  expect(uneven?.gbps?.is).toBeGreaterThan(40);
});

it('a matrix alone is a machine, and a tree of devices without models says what is missing', () => {
  const smi = [
    '        GPU0  GPU1  GPU2  GPU3  NIC0  NIC1',
    'GPU0     X    NV18  SYS   SYS   PIX   SYS',
    'GPU1    NV18   X    SYS   SYS   PIX   SYS',
    'GPU2    SYS   SYS    X    NV18  SYS   PIX',
    'GPU3    SYS   SYS   NV18   X    SYS   PIX',
  ].join('\n');
  const text = { text: smi, fileName: 'matrix.txt' };
  expect(hasEvidence(text)).toBe(true);
  expect(parseHosts(text)).toHaveLength(1);
  const lstopo =
    'Machine (2015GB total)\n  Package L#0\n    HostBridge\n      PCIBridge\n        PCI 18:00.0 (3D)\n          CoProc(CUDA) "cuda0"\n';
  const build = (each: NamedText) => parseHosts(each).map(({ input }) => completeTopology(input, undefined));
  expect(() => build({ text: lstopo, fileName: 'lstopo.txt' })).toThrow('nothing names the model of the GPUs');
});

it('eight RTX PRO 6000 below switches store 42 GB/s over PCIe (voipmonitor/rtx6kpro, hardware/pcie-bandwidth.md)', () => {
  const device = (bus: string, dev: number) =>
    `<pci busid="0000:${bus}:00.0" class="0x030000" vendor="0x10de" device="0x2bb5" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="${dev}" sm="120" rank="${dev}" gdr="1"/></pci>`;
  const below = (bus: string, inner: string) =>
    `<pci busid="0000:${bus}:00.0" class="0x060400" vendor="0x1f18" device="0x0101" link_speed="32.0 GT/s PCIe" link_width="16">${inner}</pci>`;
  const leaf = (bus: number, first: number) =>
    below(String(bus), [1, 2, 3, 4].map((place) => device(String(bus + place), first + place - 1)).join(''));
  const { root } = parseXml(
    `<system version="1"><cpu numaid="0" affinity="ffff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="24">
      ${below('20', leaf(21, 0) + leaf(41, 4))}</cpu></system>`,
  );
  const eight = (bytes: number, channels?: string) =>
    busGBps(root, 1, bytes, '2.28.9', {
      NCCL_P2P_LEVEL: 'SYS',
      ...(channels === undefined ? {} : { NCCL_MIN_NCHANNELS: channels }),
    });
  expect(Math.abs(eight(2 ** 25) / 40.1 - 1)).toBeLessThan(0.05);
  expect(Math.abs(eight(2 ** 32, '8') / 41.5 - 1)).toBeLessThan(0.05);
  // 24.6 and 24.1 us.
  const timeUs = (bytes: number) => ((bytes / eight(bytes) / 1000) * 2 * 7) / 8;
  expect(Math.abs(timeUs(256) / 24.6 - 1)).toBeLessThan(0.1);
  expect(Math.abs(timeUs(1024) / 24.1 - 1)).toBeLessThan(0.1);
});

it('L40S that share one slot share what it carries (ai-dynamo/aiconfigurator, nccl 2.27.3, l40s)', () => {
  const gpus = (count: number) => applyOverrides(l40sBox(), { gpus: count });
  const box = (count: number, bytes: number) => busGBps(gpus(count), 1, bytes, '2.27.3', l40sEnvironment(count));
  // Bus bandwidth of an all-reduce as measured: two reach the slot's, and four of them a quarter each.
  for (const [count, bytes, gbps] of [
    [2, 2 ** 22, 18.94],
    [2, 2 ** 29, 20.11],
    [4, 2 ** 22, 5.09],
    [4, 2 ** 29, 5.16],
  ] as const)
    expect(Math.abs(box(count, bytes) / gbps - 1), `${count} GPUs, ${bytes} bytes`).toBeLessThan(0.1);
});

it('32 channels of NVLink SHARP on two GB200 trays move no more than 24 (oracle-quickstart/oci-hpc-oke, README.md)', () => {
  for (const [bytes, gbps] of [
    [2 ** 28, 673.7],
    [2 ** 30, 738.6],
    [2 ** 33, 840.5],
  ] as const)
    expect(Math.abs(busGBps(machine('gb200-nvl8'), 1, bytes, '2.26.6') / gbps - 1), `${bytes} bytes`).toBeLessThan(0.1);
});

it('GeForce cards of laptops have their names and no P2P', () => {
  const { model, device } = { model: gpuOfProduct('NVIDIA GeForce RTX 5080 Laptop GPU'), device: 0x2c19n };
  expect(model?.id).toBe('rtx5080');
  expect(refusesPciP2p((0x10den << 48n) | (device << 32n))).toBe(true);
  for (const product of ['GeForce RTX 3090 Ti', 'NVIDIA GeForce RTX 4080 SUPER', 'NVIDIA GeForce RTX 5090 D'])
    expect(gpuOfProduct(product)?.gdr, product).toBe(false);
  expect(gpuOfProduct('NVIDIA RTX PRO 6000 Blackwell Server Edition')?.id).toBe('rtx-pro-6000');
});
