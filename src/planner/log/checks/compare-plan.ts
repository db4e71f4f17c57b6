import type { ChannelGraph, HostGraphs } from '../../graph/graph.js';
import { nvlsHeadRanks } from '../../graph/merge/nvls.js';
import { ringFrom, ringNeighbours, treeLinks } from '../../graph/merge/links.js';
import { kindOf } from '../../graph/merge/nodes.js';
import type { PlannedConnection } from '../../graph/transports/connection.js';
import type { Direction, Transports } from '../../graph/transports/transports.js';
import { pathTypeNames } from '../../topology/types.js';
import type { Plan } from '../../plan/plan.js';
import type { SearchResult } from '../lines/events.js';
import type { LogFinding } from './finding.js';
import type { LogPlace } from '../lines/line.js';
import { type LoggedCommunicator, type LoggedRank, TREE_STRIDE, UNKNOWN } from '../job/model.js';

/** A decision that differs between the log and the plan. */
export interface PlanDifference {
  /** The decision: `ring search`, `ring 3`, `tree 0 at rank 5`. */
  readonly decision: string;
  readonly logged: string;
  readonly planned: string;
  readonly place: LogPlace;
}

/** Result of a comparison: differences in the order of NCCL's decisions, and the number of decisions compared. */
export interface PlanComparison {
  readonly differences: readonly PlanDifference[];
  readonly compared: number;
}

/**
 * Compares a communicator of a log with a plan of the same size: searches, number of channels, rings, trees, NVLS heads,
 * transports. Decisions that the log lacks are not compared. The first difference matters most: the others mostly follow
 * from it.
 */
export function comparePlan(communicator: LoggedCommunicator, plan: Plan, transports: Transports): PlanComparison {
  const comparison = new Comparison();
  compareSearches(communicator, plan, comparison);
  compareCounts(communicator, plan, comparison);
  compareRings(communicator, plan, comparison);
  compareTrees(communicator, plan, comparison);
  compareNvls(communicator, plan, comparison);
  compareTransports(communicator, plan, transports, comparison);
  return comparison;
}

/**
 * The comparison as a finding, or undefined if nothing differs.
 *
 * @param planned the version of NCCL that the plan is for
 */
export function planFinding(
  { id, ranks }: LoggedCommunicator,
  { differences, compared }: PlanComparison,
  title: string,
  planned: string,
): LogFinding | undefined {
  const [first, ...others] = differences;
  if (first === undefined) return undefined;
  const version = [...ranks.values()].find(({ process }) => process.version !== undefined)?.process.version?.text;
  const isOther = version !== undefined && !version.startsWith(planned);
  const nameOf = (decision: string) =>
    decision
      .split(' ')
      .slice(0, decision.startsWith('link') ? 1 : 2)
      .join(' ');
  const decisions = new Set(others.map(({ decision }) => nameOf(decision)).filter((name) => name !== nameOf(first.decision)));
  return {
    code: 'plan-differs',
    severity: isOther ? 'info' : 'warning',
    communicator: id,
    problem: `${differences.length} of ${compared} decisions differ from ${isOther ? `NCCL ${planned}'s` : 'the'} plan for ${title}; the first is the ${first.decision}: the log has '${first.logged}', the plan '${first.planned}'${decisions.size === 0 ? '' : `; then ${[...decisions].slice(0, 6).join(', ')}`}`,
    cause: isOther
      ? `the plan is NCCL ${planned}'s and the log is of ${version}: versions decide differently; or the machines are not like the topology`
      : 'the machines are not like the topology, or settings of the job are not in the log',
    remedy: 'dump the topology of the job with NCCL_TOPO_DUMP_FILE and compare with that; tccl graph --why explains the plan',
    places: differences.slice(0, 4).map(({ place }) => place),
  };
}

class Comparison implements PlanComparison {
  readonly differences: PlanDifference[] = [];
  compared = 0;

  check(decision: string, logged: string, planned: string, place: LogPlace): void {
    this.compared++;
    if (logged !== planned) this.differences.push({ decision, logged, planned, place });
  }
}

const graphOfPattern: Readonly<Record<number, keyof HostGraphs>> = { 1: 'tree', 2: 'tree', 3: 'tree', 4: 'ring', 5: 'nvls' };

function compareSearches({ ranks }: LoggedCommunicator, plan: Plan, comparison: Comparison): void {
  for (const { rank, searches } of ranks.values()) {
    const { graphs } = kindOf(plan.nodes, plan.nodes.rankToNode[rank] ?? 0);
    const seen = new Set<string>();
    for (const { result, place } of searches.values()) {
      const name = graphOfPattern[result.pattern];
      // The second chain of a rank is CollNet's.
      if (name === undefined || seen.has(name)) continue;
      seen.add(name);
      const planned = graphs[name];
      if (planned === undefined) continue;
      comparison.check(`${name} search`, searchText(result), plannedText(planned), place);
    }
  }
}

function searchText({
  pattern,
  crossNic,
  nChannels,
  bwIntra,
  bwInter,
  typeIntra,
  typeInter,
  sameChannels,
}: SearchResult): string {
  return `Pattern ${pattern}, crossNic ${crossNic}, nChannels ${nChannels}, bw ${bwIntra.toFixed(6)}/${bwInter.toFixed(6)}, type ${typeIntra}/${typeInter}, sameChannels ${sameChannels ? 1 : 0}`;
}

function plannedText({ typeIntra, typeInter, ...graph }: ChannelGraph): string {
  return searchText({ ...graph, typeIntra: pathTypeNames[typeIntra], typeInter: pathTypeNames[typeInter] });
}

function compareCounts({ ranks }: LoggedCommunicator, plan: Plan, comparison: Comparison): void {
  for (const { channelCounts, ringOrders } of ranks.values()) {
    const order = [...ringOrders.values()][0];
    if (channelCounts !== undefined) {
      const { coll, nvls, p2p, place } = channelCounts;
      const text = (forColl: number, forNvls: number, forP2p: number) =>
        `${forColl} for collectives${nvls === undefined ? '' : `, ${forNvls} for NVLS`}, ${forP2p} p2p`;
      comparison.check(
        'channel counts',
        text(coll, nvls ?? 0, p2p),
        text(plan.nChannels, plan.nvls?.nChannels ?? 0, plan.p2p.nChannels),
        place,
      );
    } else if (order !== undefined)
      comparison.check('channel count', String(order.nChannels), String(plan.nChannels), order.place);
  }
}

function compareRings({ ranks, nRanks }: LoggedCommunicator, plan: Plan, comparison: Comparison): void {
  for (const { rank, ringOrders, ring, ringPlace, last } of ranks.values()) {
    for (const [channel, { ranks: listed, place }] of ringOrders) {
      if (channel >= plan.nChannels || listed.length === 0) continue;
      const logged = listed.slice(0, nRanks);
      const planned = [...ringFrom(plan, channel, logged[0] ?? 0).subarray(0, logged.length)];
      comparison.check(`ring ${channel}`, logged.join(' '), planned.join(' '), place);
    }
    for (let channel = 0; channel * 2 < ring.length && channel < plan.nChannels; channel++) {
      const [prev = -1, next = -1] = ring.subarray(channel * 2, channel * 2 + 2);
      if (prev < 0) continue;
      const planned = ringNeighbours(plan, channel, rank);
      comparison.check(
        `ring ${channel} at rank ${rank}`,
        `${prev} -> ${rank} -> ${next}`,
        `${planned.prev} -> ${rank} -> ${planned.next}`,
        ringPlace ?? last,
      );
    }
  }
}

function compareTrees({ ranks }: LoggedCommunicator, plan: Plan, comparison: Comparison): void {
  for (const { rank, trees, treesPlace, last } of ranks.values()) {
    for (let channel = 0; channel * TREE_STRIDE < trees.length && channel < plan.nChannels; channel++) {
      const [a = UNKNOWN, b = -1, c = -1, up = -1] = trees.subarray(channel * TREE_STRIDE, (channel + 1) * TREE_STRIDE);
      if (a === UNKNOWN) continue;
      const planned = treeLinks(plan, channel, rank);
      comparison.check(
        `tree ${channel} at rank ${rank}`,
        `${a}/${b}/${c}->${rank}->${up}`,
        `${planned.down.join('/')}->${rank}->${planned.up}`,
        treesPlace ?? last,
      );
    }
  }
}

function compareNvls({ ranks }: LoggedCommunicator, { nodes, nvls }: Plan, comparison: Comparison): void {
  for (const { nvlsHeads } of ranks.values()) {
    for (const [head, { ranks: logged, place }] of nvlsHeads) {
      const planned = nvls === undefined || head >= nvls.nHeads ? 'none' : nvlsHeadRanks(nodes, nvls, head, 20).join(' ');
      comparison.check(`NVLS head ${head}`, logged.join(' '), planned, place);
    }
  }
}

/**
 * Compares the transports of connections; rings and trees compare the peers. A log does not distinguish connections of rings from
 * those of trees.
 */
function compareTransports({ ranks }: LoggedCommunicator, plan: Plan, transports: Transports, comparison: Comparison): void {
  for (const record of ranks.values()) {
    for (const end of ['send', 'receive'] as const) {
      const links = record.links.filter((link) => link.end === end);
      if (links.length === 0) continue;
      for (const [peer, words] of plannedLinks(plan, transports, record, end)) {
        const own = links.filter((link) => link.peer === peer);
        const odd = own.find((link) => !words.has(loggedLink(link, record)));
        const shown = odd ?? own[0];
        if (shown === undefined) continue;
        const planned = [...words].join(' or ');
        comparison.check(
          `link ${end === 'send' ? `${record.rank} -> ${peer}` : `${peer} -> ${record.rank}`}`,
          odd === undefined ? planned : loggedLink(odd, record),
          planned,
          shown.place,
        );
      }
    }
  }
}

/** By peer: the transports of a rank's connections with it, on all channels. */
function plannedLinks(plan: Plan, transports: Transports, record: LoggedRank, end: Direction): Map<number, Set<string>> {
  const planned = new Map<number, Set<string>>();
  for (let channel = 0; channel < plan.nChannels; channel++) {
    const { up, down } = transports.tree(channel, record.rank, end);
    for (const connection of [transports.ring(channel, record.rank)[end], up, ...down]) {
      if (connection === undefined) continue;
      const words = planned.get(connection.peer) ?? new Set();
      planned.set(connection.peer, words.add(plannedLink(connection, record)));
    }
  }
  return planned;
}

function plannedLink(connection: PlannedConnection, { rank }: LoggedRank): string {
  if (connection.via === 'P2P') return connection.relay === undefined ? 'P2P' : `P2P by way of rank ${connection.relay}`;
  if (connection.via === 'SHM' || connection.via === 'none') return connection.via;
  const proxy = connection.proxyRank === rank ? '' : `(${connection.proxyRank})`;
  return `NET/${connection.dev}${proxy}${connection.gdr === 0 ? '' : '/GDRDMA'}`;
}

function loggedLink({ transport, end }: LoggedRank['links'][number], { rank }: LoggedRank): string {
  const { family, nic, via, gdr } = transport;
  if (family === 'P2P') return via === undefined ? 'P2P' : `P2P by way of rank ${via}`;
  if (family === 'SHM') return 'SHM';
  // A receiver's proxy is its own.
  const proxy = via === undefined || via === rank || end === 'receive' ? '' : `(${via})`;
  return `NET/${nic ?? ''}${proxy}${gdr === true ? '/GDRDMA' : ''}`;
}
