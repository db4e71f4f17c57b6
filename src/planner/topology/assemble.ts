import type { CpuNode, DevNode, GpuNode, Links, NetNode, PciNode, PlainNode, PluginNode, System, SystemNode } from './system.js';
import { NodeType, NODE_TYPES } from './types.js';

/** The system of these nodes, which must be sorted by type and numbered. */
export function assemble(nodes: readonly SystemNode[], links: Links, hostHashes: readonly bigint[], systemId: number): System {
  const first = new Int32Array(NODE_TYPES + 1);
  for (const node of nodes) first[node.type + 1] = (first[node.type + 1] ?? 0) + 1;
  for (let type = 0; type < NODE_TYPES; type++) first[type + 1] = (first[type + 1] ?? 0) + (first[type] ?? 0);
  const ofType = <Node extends SystemNode>(type: NodeType) => nodes.slice(first[type], first[type + 1]) as Node[];
  const gpus = ofType<GpuNode>(NodeType.GPU);
  const devs = ofType<DevNode>(NodeType.DEV);
  return {
    nodes,
    gpus,
    pcis: ofType<PciNode>(NodeType.PCI),
    nvSwitches: ofType<PlainNode>(NodeType.NVS),
    cpus: ofType<CpuNode>(NodeType.CPU),
    nics: ofType<PlainNode>(NodeType.NIC),
    nets: ofType<NetNode>(NodeType.NET),
    gins: ofType<PluginNode>(NodeType.GIN),
    rmas: ofType<PluginNode>(NodeType.RMA),
    hardware: devs.length > 0 ? devs : gpus,
    bridges: ofType<PlainNode>(NodeType.CXB),
    first,
    links,
    hostHashes,
    systemId,
  };
}

/** Links as arrays, from the links of each vertex in order. */
export function linksFromLists(
  lists: readonly (readonly { readonly to: number; readonly type: number; readonly bandwidthGBps: number }[])[],
): Links {
  const count = lists.reduce((sum, list) => sum + list.length, 0);
  const links = {
    start: new Int32Array(lists.length + 1),
    from: new Int32Array(count),
    to: new Int32Array(count),
    type: new Uint8Array(count),
    bandwidthGBps: new Float32Array(count),
    reverse: new Int32Array(count).fill(-1),
  };
  let next = 0;
  lists.forEach((list, vertex) => {
    links.start[vertex] = next;
    for (const link of list) {
      links.from[next] = vertex;
      links.to[next] = link.to;
      links.type[next] = link.type;
      links.bandwidthGBps[next] = link.bandwidthGBps;
      next++;
    }
  });
  links.start[lists.length] = next;
  fillReverse(links);
  return links;
}

/** For each link the first link back of any type, as in older versions; -1 without one. */
export function anyReverse({ start, from, to }: Links): Int32Array {
  return Int32Array.from(to, (back, link) => {
    const first = start[back] ?? 0;
    const position = to.subarray(first, start[back + 1] ?? 0).indexOf(from[link] ?? -1);
    return position < 0 ? -1 : first + position;
  });
}

function fillReverse({ start, from, to, type, reverse }: Links): void {
  for (let link = 0; link < to.length; link++) {
    const back = to[link] ?? 0;
    const end = start[back + 1] ?? 0;
    for (let candidate = start[back] ?? 0; candidate < end; candidate++) {
      if (to[candidate] === from[link] && type[candidate] === type[link]) {
        reverse[link] = candidate;
        break;
      }
    }
  }
}
