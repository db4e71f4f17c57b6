import { computePaths } from '../../planner/topology/paths/compute-paths.js';
import { loadOfLinks } from '../../planner/plan/overview/fullest-link.js';
import type { HostOverview } from '../../planner/plan/overview/overview.js';
import { formatGBps } from '../../planner/topology/format.js';
import { type GpuNode, type NetNode, nodeName, type System } from '../../planner/topology/system.js';
import { NodeType, pathTypeNames } from '../../planner/topology/types.js';
import type { Picture } from '../../view/draw/picture.js';
import { draw, type Drawing } from '../../view/machine/boxes.js';
import { withWay } from '../../view/machine/highlight.js';
import { drawnId, linkUses } from '../../view/machine/loads.js';
import { matrixPicture } from '../../view/machine/matrix.js';
import { linkKey, machinePicture } from '../../view/machine/picture.js';
import { pathMeanings } from '../../view/machine/text.js';
import type { PreparedHosts } from '../../planner/plan/cluster.js';
import type { ShownChannels, ShownMachines, ShownMatrices } from '../messages.js';
import type { Planned } from '../planned.js';
import type { SourceMachine } from '../source.js';
import type { PartInput } from './input.js';

/** Hosts of one kind in a plan. */
interface KindOfHosts {
  readonly host: HostOverview;
  readonly hosts: PreparedHosts;
  readonly machine: SourceMachine;
}

function kindsOf({ source, prepared, overview }: Planned): KindOfHosts[] {
  const kinds = [...new Set(prepared.map((hosts) => hosts.host))];
  return overview.hosts.flatMap((host, index) => {
    const at = prepared.findIndex((each) => each.host === kinds[index]);
    const [hosts, machine] = [prepared[at], source.machines[at]];
    return hosts === undefined || machine === undefined ? [] : [{ host, hosts, machine }];
  });
}

function drawingOf({ source }: Planned, { host, machine }: KindOfHosts): Drawing {
  return draw(host.name, machine.system, computePaths(machine.system, source.parameters), machine.root);
}

/** The drawing of each kind of hosts. */
export function drawingsOf(made: Planned): Drawing[] {
  return kindsOf(made).map((kind) => drawingOf(made, kind));
}

/** Each kind of hosts, with the load of the rings of all channels, or of one; on a phone in its width. */
export function machinePictures(made: Planned, width: number | undefined, channel?: number): Picture[] {
  const { plan } = made;
  return kindsOf(made).map((kind) => {
    const { systems, host } = kind.hosts;
    const loads = new Map(
      systems.flatMap((local, node) => {
        const ring = host.nodes[node]?.graphs.ring;
        if (ring === undefined) return [];
        const used = [...new Set(plan.ringOfChannel)].filter((each) => channel === undefined || each === channel);
        const speed = plan.graphs.ring;
        return [...linkUses(local, loadOfLinks(local, ring, used, speed))].filter(([, use]) => node === 0 || use.usedGBps > 0);
      }),
    );
    return machinePicture(drawingOf(made, kind), { loads, ...(width === undefined ? {} : { width }) });
  });
}

export function shownMachines({ made, state: { channel, selected }, width }: PartInput): ShownMachines {
  const pictures = machinePictures(made, width, channel);
  return {
    view: 'machine',
    hosts: kindsOf(made).flatMap(({ host: { name, rings } }, index) => {
      const picture = pictures[index];
      const channels = rings.flatMap((ring) => ring.channels).sort((a, b) => a - b);
      return picture === undefined ? [] : [{ name, picture, channels }];
    }),
    over: selected?.startsWith('link/') === true ? channelsOver(made, selected) : undefined,
  };
}

/** Channels whose rings go over a link, in any direction. */
function channelsOver(made: Planned, subject: string): number[] {
  const { plan } = made;
  const [from = '', to = ''] = subject.slice('link/'.length).split('>');
  const used = [...new Set(plan.ringOfChannel)];
  const rings = new Set(
    kindsOf(made).flatMap(({ hosts: { systems, host } }) =>
      systems.flatMap((local, node) => {
        const ring = host.nodes[node]?.graphs.ring;
        if (ring === undefined) return [];
        return used.filter((each) => {
          const uses = linkUses(local, loadOfLinks(local, ring, [each], plan.graphs.ring));
          return [linkKey(from, to), linkKey(to, from)].some((key) => (uses.get(key)?.usedGBps ?? 0) > 0);
        });
      }),
    ),
  );
  return [...plan.ringOfChannel].flatMap((ring, channel) => (rings.has(ring) ? [channel] : []));
}

export function shownMatrices({ made, state: { selected }, width }: PartInput): ShownMatrices {
  return {
    view: 'matrix',
    path: selected?.startsWith('path/') === true ? shownPath(made, selected, width) : undefined,
    hosts: kindsOf(made).map((kind) => ({
      name: kind.host.name,
      picture: matrixPicture(drawingOf(made, kind), subjects(kind.machine.system), width),
    })),
  };
}

/** The path of a cell, device by device. */
function shownPath(made: Planned, subject: string, width: number | undefined): ShownMatrices['path'] {
  const ends = subject.slice('path/'.length).split('>');
  const pictures = machinePictures(made, width);
  for (const [index, kind] of kindsOf(made).entries()) {
    const { system } = kind.machine;
    const subjectOf = subjects(system);
    const all = [...system.gpus, ...system.nets];
    const [from, to] = ends.map((end) => all.find((node) => subjectOf(nodeName(node)) === end));
    const picture = pictures[index];
    if (from === undefined || to === undefined || from === to || picture === undefined) continue;
    const paths = computePaths(system, made.source.parameters);
    const path = paths.between(from.type, from.index, to.type, to.index);
    const nodes = paths.links(path).flatMap((link) => system.nodes[system.links.to[link] ?? -1] ?? []);
    const places = [from, ...nodes].map((node) => subjectOf(drawnId(node)));
    const devices = places.filter((place, at) => place !== places[at - 1]);
    const type = pathTypeNames[paths.type[path] ?? -1] ?? 'DIS';
    const speed = `${formatGBps(paths.bandwidthGBps[path] ?? 0)} GB/s`;
    const text = `${nameOf(from)} to ${nameOf(to)}: ${type}, ${pathMeanings.get(type) ?? ''}, ${speed}, by ${devices.join(', ')}`;
    return { text, picture: withWay(picture, devices, text) };
  }
  return undefined;
}

function nameOf(node: GpuNode | NetNode): string {
  return `${node.type === NodeType.GPU ? 'GPU' : 'NET'} ${node.dev}`;
}

export function shownChannels(made: Planned): ShownChannels {
  return {
    view: 'channels',
    uses: made.overview.uses,
    hosts: kindsOf(made).map(({ host: { name, rings }, machine: { system } }) => {
      const subjectOf = subjects(system);
      const ranks = new Map(system.gpus.map((gpu) => [gpu.rank, subjectOf(nodeName(gpu))]));
      const nets = new Map(system.nets.map((net) => [`NET ${net.dev}`, nodeName(net)]));
      return {
        name,
        rings: rings.map((ring) => ({
          ...ring,
          subjects: ring.ranks.map((rank) => ranks.get(rank) ?? ''),
          ends: [ring.entry, ring.exit].map((label) => (label === undefined ? undefined : nets.get(label))),
        })),
      };
    }),
  };
}

/** Subject of a node by its name: a GPU is drawn as its hardware. */
export function subjects(system: System): (id: string) => string {
  const hardwareOf = (gpu: GpuNode) => system.hardware[gpu.parent];
  const drawn = new Map(
    system.gpus.map((gpu) => {
      const hardware = hardwareOf(gpu);
      return [nodeName(gpu), hardware === undefined ? nodeName(gpu) : nodeName(hardware)];
    }),
  );
  return (id) => drawn.get(id) ?? id;
}
