import { describe, expect, it } from 'vitest';
import type { HostGraphs } from '../../../../src/planner/graph/graph.js';
import { graphLines } from '../../../../src/planner/graph/graph-text.js';
import { graphsToXml } from '../../../../src/planner/graph/graph-xml.js';
import { channelCountLine, nvlsHeadLines, ringLines, treesLine } from '../../../../src/planner/graph/merge/print.js';
import { searchHost } from '../../../../src/planner/graph/search-host.js';
import type { Parameters } from '../../../../src/planner/parameters.js';
import { type Plan, plan } from '../../../../src/planner/plan/plan.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import type { LocalSystem } from '../../../../src/planner/topology/local-systems.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { cpu, nvLink, nvSwitchLink, onlyLocalSystem, parametersWith, systemXml } from '../topology/machine.js';
import { ringNeighbourLines } from './nccl-lines.js';

/**
 * Lines that NCCL wrote on real machines, as people posted them in public issues; the machines are built after the
 * system that their logs show. The logs come from earlier releases than 2.30.7. Differences are noted with
 * each; names of nodes have the number of their host since 2.21 (`NET/0-3`, before `NET/3`).
 */

const gen4 = 'link_speed="16.0 GT/s PCIe" link_width="16"';
const gen5 = 'link_speed="32.0 GT/s PCIe" link_width="16"';
const sapphireRapids = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"';
const amd = 'arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1"';

function pci(bus: string, link: string, content: string): string {
  return `<pci busid="0000:${bus}:00.0" class="0x060400" ${link}>${content}</pci>`;
}

function gpu(bus: string, rank: number, sm: number, link: string, below = ''): string {
  return `<pci busid="0000:${bus}:00.0" class="0x030200" ${link}><gpu dev="${rank}" rank="${rank}" sm="${sm}" gdr="1">${below}</gpu></pci>`;
}

function h100(bus: string, rank: number, link: string): string {
  return gpu(bus, rank, 90, link, nvSwitchLink(18));
}

interface NetAttributes {
  readonly guid?: number;
  readonly port?: number;
  readonly gdr?: number;
}

function nic(
  bus: string,
  dev: number,
  gbitps: number,
  link: string,
  { guid = dev + 1, port = 1, gdr = 1 }: NetAttributes = {},
): string {
  const net = `<net name="net${dev}" dev="${dev}" speed="${gbitps * 1000}" port="${port}" guid="0x${guid}" maxconn="65536" gdr="${gdr}"/>`;
  return `<pci busid="0000:${bus}:00.0" class="0x020700" ${link}><nic>${net}</nic></pci>`;
}

/** So many such hosts: what one of them finds, in NCCL's words, and the plan of all. */
function seen(
  root: XmlElement,
  hosts: number,
  changes: Partial<Parameters> = {},
): { local: LocalSystem; graphs: HostGraphs; lines: string[]; plan: Plan } {
  const parameters = parametersWith(changes);
  const gpus = onlyLocalSystem(root, parameters, 1_000_000).system.gpus.length;
  const local = onlyLocalSystem(root, parameters, hosts * gpus);
  const graphs = searchHost(local, parameters);
  const lines = [graphs.ring, graphs.tree, graphs.nvls].flatMap((graph) => (graph === undefined ? [] : graphLines(graph, local)));
  return { local, graphs, lines, plan: plan({ hosts: [{ machine: root, count: hosts }] }, parameters) };
}

describe('NVIDIA/nccl#1197: eight H100 and four NICs in a virtual machine, 2.19.4', () => {
  const pair = (bus: readonly [string, string, string, string], rank: number) =>
    pci(
      bus[0],
      gen4,
      h100(bus[1], rank, gen4) + h100(bus[2], rank + 1, gen4) + nic(bus[3], rank / 2, 200, gen4, { guid: rank / 2, port: 0 }),
    );
  const root = systemXml(
    cpu(0, pair(['02', '04', '05', '06'], 0) + pair(['08', '0a', '0b', '0c'], 2)),
    cpu(1, pair(['82', '84', '85', '86'], 4) + pair(['88', '8a', '8b', '8c'], 6)),
  );

  it('one host finds the rings, trees and heads of the log', () => {
    expect(seen(root, 1).lines.filter((line) => line.startsWith('Pattern'))).toEqual([
      'Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1',
      'Pattern 1, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1',
      'Pattern 5, crossNic 0, nChannels 8, bw 40.000000/60.000000, type NVL/PIX, sameChannels 0',
    ]);
  });

  it('the best path to a NIC carries 24 GB/s, as in the log', () => {
    expect(seen(root, 2).local.maxGBps).toBe(24);
  });
});

describe('NVIDIA/nccl#1189: two hosts with two H20 each, the path by way of another GPU turned off, 2.20', () => {
  const alone = (bus: string, nicBus: string, dev: number) => pci(bus, gen5, nic(nicBus, dev, 400, gen5));
  const root = systemXml(
    cpu(
      0,
      [
        pci('16', gen5, h100('18', 0, gen5) + nic('19', 3, 400, gen5)),
        nic('26', 8, 200, gen5),
        pci('36', gen5, h100('38', 1, gen5) + nic('39', 2, 400, gen5)),
        alone('46', '48', 1),
        alone('56', '58', 0),
      ].join(''),
    ),
    cpu(1, [alone('96', '98', 5), alone('a6', 'a8', 4), alone('b6', 'b8', 7), alone('c6', 'c8', 6)].join('')),
  );
  const { local, graphs, plan: made } = seen(root, 2, { pxnDisable: 1 });

  it('=== System : maxBw 48.0 totalBw 370.8 ===', () => {
    expect([local.maxGBps.toFixed(1), local.totalGBps.toFixed(1)]).toEqual(['48.0', '370.8']);
  });

  it('rings cross the NICs of both GPUs in pairs, which 2.20 still called crossNic 1', () => {
    expect(graphLines(graphs.ring, local)).toEqual([
      'Pattern 4, crossNic 2, nChannels 4, bw 24.000000/24.000000, type NVL/PIX, sameChannels 0',
      ' 0 : NET/0-3 GPU/0-18000 GPU/0-38000 NET/0-2',
      ' 1 : NET/0-2 GPU/0-38000 GPU/0-18000 NET/0-3',
      ' 2 : NET/0-3 GPU/0-18000 GPU/0-38000 NET/0-2',
      ' 3 : NET/0-2 GPU/0-38000 GPU/0-18000 NET/0-3',
    ]);
  });

  it('rings and trees through both hosts', () => {
    expect(ringNeighbourLines(made, 0)[2]).toBe('Ring 02 : 2 -> 0 -> 1');
    expect(treesLine(made, 0)).toMatch(/^Trees \[0\] 1\/2\/-1->0->-1 \[1\] -1\/-1\/-1->0->1 /);
    // `Tree 1 : 1 -> 3 -> 2/-1/-1` in the log.
    expect(treesLine(made, 3)).toContain(' [1] 2/-1/-1->3->1 ');
  });
});

describe('NVIDIA/nccl#1357: two hosts of eight H100, of which every second has a NIC, 2.21', () => {
  const both = (bus: readonly [string, string, string], rank: number) =>
    pci(bus[0], gen5, h100(bus[1], rank, gen5) + nic(bus[2], rank / 2, 400, gen5));
  const alone = (bus: string, gpuBus: string, rank: number) => pci(bus, gen5, h100(gpuBus, rank, gen5));
  // The system has the GPUs with NICs first, so chains go 0 2 1 3 4 6 5 7.
  const { plan: made } = seen(
    systemXml(
      cpu(
        0,
        both(['10', '11', '12'], 0) + both(['20', '21', '22'], 2) + alone('30', '31', 1) + alone('40', '41', 3),
        sapphireRapids,
      ),
      cpu(
        1,
        both(['90', '91', '92'], 4) + both(['a0', 'a1', 'a2'], 6) + alone('b0', 'b1', 5) + alone('c0', 'c1', 7),
        sapphireRapids,
      ),
    ),
    2,
  );

  it('heads of NVLink SHARP', () => {
    expect(nvlsHeadLines(made)).toEqual([
      'NVLS Head  0:  0  8',
      'NVLS Head  1:  2 10',
      'NVLS Head  2:  4 12',
      'NVLS Head  3:  6 14',
    ]);
  });

  it('trees of ranks 1, 3 and 6', () => {
    expect(treesLine(made, 3)).toBe(
      'Trees [0] 4/-1/-1->3->1 [1] 4/-1/-1->3->1 [2] -1/-1/-1->3->1 [3] 4/-1/-1->3->1 [4] 4/-1/-1->3->1 [5] 4/-1/-1->3->1 [6] -1/-1/-1->3->1 [7] 4/-1/-1->3->1 [8] 4/-1/-1->3->1 [9] 4/-1/-1->3->1 [10] -1/-1/-1->3->1 [11] 4/-1/-1->3->1 [12] 4/-1/-1->3->1 [13] 4/-1/-1->3->1 [14] -1/-1/-1->3->1 [15] 4/-1/-1->3->1',
    );
    expect(treesLine(made, 1)).toContain('Trees [0] 3/-1/-1->1->2 [1] 3/-1/-1->1->2 [2] 3/-1/-1->1->2 ');
    expect(treesLine(made, 6)).toMatch(/^Trees \[0\] 5\/-1\/-1->6->4 .* \[3\] 5\/14\/-1->6->-1 .* \[11\] 5\/-1\/-1->6->14 /);
  });
});

describe('NVIDIA/nccl#1519: two virtual machines of eight H100, whose NICs all say that they are the same port, 2.20', () => {
  const slowest = `<pci busid="0000:00:0c.0" class="0x020000" link_speed="" link_width="0"><nic><net name="eth0" dev="0" speed="200000" port="0" guid="0x0" maxconn="65536" gdr="0"/></nic></pci>`;
  const fast = (bus: string, dev: number) => nic(bus, dev, 200, gen4, { guid: 0, port: 0, gdr: 0 });
  // The log does not tell in which order the NICs of the second CPU stand; this is the order in which it uses them.
  const {
    local,
    graphs,
    plan: made,
  } = seen(
    systemXml(
      cpu(
        0,
        slowest +
          pci('02', gen4, h100('04', 0, gen4) + h100('05', 1, gen4) + fast('06', 1) + fast('07', 2)) +
          pci('09', gen4, h100('0b', 2, gen4) + h100('0c', 3, gen4) + fast('0d', 3) + fast('0e', 4)),
        sapphireRapids,
      ),
      cpu(
        1,
        pci('82', gen4, h100('84', 4, gen4) + h100('85', 5, gen4) + fast('86', 6)) +
          pci('89', gen4, h100('8b', 6, gen4) + h100('8c', 7, gen4) + fast('8d', 7) + fast('8e', 5)),
        sapphireRapids,
      ),
    ),
    2,
  );

  it('seven heads share the 25 GB/s of one port', () => {
    expect(graphs.nvls && graphLines(graphs.nvls, local)).toEqual([
      'Pattern 5, crossNic 0, nChannels 7, bw 3.000000/3.000000, type NVL/PHB, sameChannels 0',
      ' 0 : NET/0-1 GPU/0-4000 NET/0-1',
      ' 1 : NET/0-3 GPU/0-5000 NET/0-3',
      ' 2 : NET/0-2 GPU/0-b000 NET/0-2',
      ' 3 : NET/0-4 GPU/0-c000 NET/0-4',
      ' 4 : NET/0-6 GPU/0-84000 NET/0-6',
      ' 5 : NET/0-7 GPU/0-85000 NET/0-7',
      ' 6 : NET/0-5 GPU/0-8b000 NET/0-5',
    ]);
    expect(nvlsHeadLines(made)).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map((head) => `NVLS Head  ${head}:  ${head} ${String(head + 8).padStart(2)}`),
    );
  });
});

it('NVIDIA/nccl#1313: two hosts of eight H800, NICs beside the first and the last: the graph that was dumped', () => {
  const h800 = (bus: string, rank: number, below = '') =>
    pci(`${bus}0`, gen5, gpu(`${bus}1`, rank, 90, gen5, nvSwitchLink(8)) + below);
  const { graphs, local } = seen(
    systemXml(
      cpu(0, h800('1', 0, nic('12', 0, 400, gen5)) + h800('2', 1) + h800('3', 2) + h800('4', 3), sapphireRapids),
      cpu(1, h800('9', 4) + h800('a', 5) + h800('b', 6) + h800('c', 7, nic('c2', 1, 400, gen5)), sapphireRapids),
    ),
    2,
  );
  const xml = writeXml(graphsToXml(graphs, local));
  expect(xml).toContain(
    '<graph id="0" pattern="4" crossnic="0" nchannels="4" speedintra="24" speedinter="24" latencyinter="0" typeintra="NVL" typeinter="PXN" samechannels="0">',
  );
  const [ring = ''] = xml.split('</graph>');
  const ways = ring
    .split('<channel>')
    .slice(1)
    .map((channel) => [...channel.matchAll(/dev="(?:0x)?([0-9a-f])"/g)].map(([, dev]) => dev).join(' '));
  expect(ways).toEqual(['0 0 7 6 5 4 3 2 1 0', '1 7 6 5 4 3 2 1 0 1', '0 0 7 6 5 4 3 2 1 0', '1 7 6 5 4 3 2 1 0 1']);
});

it('NVIDIA/nccl#1499: four A100 that are all joined, on AMD: maxBw 80.0 totalBw 240.0', () => {
  const buses = ['01', '41', '81', 'c1'];
  const links = (own: string) =>
    buses
      .filter((bus) => bus !== own)
      .map((bus) => nvLink(bus, 4))
      .join('');
  const { local } = seen(systemXml(...buses.map((bus, rank) => cpu(rank, gpu(bus, rank, 80, gen4, links(bus)), amd))), 1);
  expect([local.maxGBps, local.totalGBps]).toEqual([80, 240]);
});

it('NVIDIA/nccl-tests#307: eight RTX 4090 behind two PCI switches, whose driver refuses peer-to-peer', () => {
  const four = (bus: string, first: number, rank: number) =>
    pci(bus, gen4, [0, 1, 2, 3].map((number) => gpu((first + number).toString(16), rank + number, 89, gen4)).join(''));
  const { lines } = seen(systemXml(cpu(0, four('4b', 0x4e, 0)), cpu(1, four('cb', 0xce, 4))), 1, { p2pDisable: 1 });
  const way = ' 0 : GPU/0-4e000 GPU/0-4f000 GPU/0-50000 GPU/0-51000 GPU/0-ce000 GPU/0-cf000 GPU/0-d0000 GPU/0-d1000';
  expect(lines).toEqual([
    'Pattern 4, crossNic 0, nChannels 1, bw 5.000000/5.000000, type SYS/PIX, sameChannels 1',
    way,
    'Pattern 1, crossNic 0, nChannels 1, bw 5.000000/5.000000, type SYS/PIX, sameChannels 1',
    way,
  ]);
});

it('NVIDIA/nccl-tests#100: eight A100 on NVSwitches, 2.10', () => {
  const { plan: made } = seen(machine('dgx-a100'), 1);
  expect(ringLines(made)).toEqual(
    Array.from({ length: 24 }, (_, channel) => `Channel ${String(channel).padStart(2, '0')}/24 : 0 1 2 3 4 5 6 7`),
  );
  expect(treesLine(made, 0)).toBe(`Trees${Array.from({ length: 24 }, (_, channel) => ` [${channel}] 1/-1/-1->0->-1`).join('')}`);
});

it('NVIDIA/nccl#2397: two hosts of two GPUs without NVLink, 2.30.4', () => {
  const { plan: made } = seen(machine('pcie-2-l40s'), 2);
  expect(ringLines(made)).toEqual(['Channel 00/02 : 0 1 2 3', 'Channel 01/02 : 0 1 2 3']);
  expect([0, 1, 2, 3].map((rank) => treesLine(made, rank))).toEqual([
    'Trees [0] 1/2/-1->0->-1 [1] 1/-1/-1->0->2',
    'Trees [0] -1/-1/-1->1->0 [1] -1/-1/-1->1->0',
    'Trees [0] 3/-1/-1->2->0 [1] 3/0/-1->2->-1',
    'Trees [0] -1/-1/-1->3->2 [1] -1/-1/-1->3->2',
  ]);
  expect(channelCountLine(made)).toMatch(/^2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, /);
});

describe('graph files that people posted', () => {
  // Four GPUs without NVLink and four NICs, as these files name them.
  const root = systemXml(
    cpu(0, [0, 1, 2, 3].map((rank) => gpu(`1${rank}`, rank, 80, gen4) + nic(`2${rank}`, rank, 100, gen4)).join('')),
  );
  const channel = (...devs: readonly number[]) =>
    `<channel>${devs.map((dev, place) => `<${place === 0 || place === devs.length - 1 ? 'net' : 'gpu'} dev="${dev}"/>`).join('')}</channel>`;
  const ringThrough = (text: string) => {
    const local = onlyLocalSystem(root, parametersWith({}), 8);
    const graphFile = parseXml(`<graphs version="1">${text}</graphs>`).root;
    const graphs = searchHost(local, parametersWith({}), { graphFile });
    return [...graphLines(graphs.ring, local), ...graphLines(graphs.tree, local)];
  };

  it('NVIDIA/nccl#524: rings that come in by one NIC and go out by another, with plain trees', () => {
    const settings = 'crossnic="0" nchannels="2" typeintra="SYS" typeinter="SYS" samechannels="1"';
    expect(
      ringThrough(`
      <graph id="0" pattern="4" ${settings} speedintra="12" speedinter="12">${channel(3, 0, 1, 2, 3, 0)}${channel(3, 0, 1, 2, 3, 0)}</graph>
      <graph id="1" pattern="3" ${settings} speedintra="6" speedinter="6">${channel(3, 0, 1, 2, 3, 3)}${channel(3, 0, 1, 2, 3, 3)}</graph>
      <graph id="2" pattern="3" crossnic="0" nchannels="0" speedintra="0" speedinter="0" typeintra="NVL" typeinter="PIX" samechannels="1"/>`),
    ).toEqual([
      'Pattern 4, crossNic 0, nChannels 2, bw 12.000000/12.000000, type SYS/SYS, sameChannels 1',
      ' 0 : NET/0-3 GPU/0-10000 GPU/0-11000 GPU/0-12000 GPU/0-13000 NET/0-0',
      ' 1 : NET/0-3 GPU/0-10000 GPU/0-11000 GPU/0-12000 GPU/0-13000 NET/0-0',
      'Pattern 3, crossNic 0, nChannels 2, bw 6.000000/6.000000, type SYS/SYS, sameChannels 1',
      ' 0 : NET/0-3 GPU/0-10000 GPU/0-11000 GPU/0-12000 GPU/0-13000 NET/0-3',
      ' 1 : NET/0-3 GPU/0-10000 GPU/0-11000 GPU/0-12000 GPU/0-13000 NET/0-3',
    ]);
  });

  it('NVIDIA/nccl#1239: two rings in opposite directions; the tree is searched, with as many channels', () => {
    const lines =
      ringThrough(`<graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="6" speedinter="6" latencyinter="0" typeintra="SYS" typeinter="SYS" samechannels="0">
      ${channel(0, 0, 1, 2, 3, 3)}${channel(3, 3, 2, 1, 0, 0)}</graph>`);
    expect(lines.slice(0, 3)).toEqual([
      'Pattern 4, crossNic 0, nChannels 2, bw 6.000000/6.000000, type SYS/SYS, sameChannels 0',
      ' 0 : NET/0-0 GPU/0-10000 GPU/0-11000 GPU/0-12000 GPU/0-13000 NET/0-3',
      ' 1 : NET/0-3 GPU/0-13000 GPU/0-12000 GPU/0-11000 GPU/0-10000 NET/0-0',
    ]);
    expect(lines[3]).toMatch(/^Pattern 1, crossNic 0, nChannels 2, /);
  });
});
