import { counted } from '../../../counted.js';
import { type LogFinding, namedRanks } from './finding.js';
import type { LogPlace } from '../lines/line.js';
import { type LoggedCommunicator, type LogModel, TREE_STRIDE, UNKNOWN } from '../job/model.js';

/** Checks that rings are closed, that ranks agree on them, and that trees are connected. */
export function checkChannels(communicator: LoggedCommunicator, { cutLines }: Pick<LogModel, 'cutLines'>): LogFinding[] {
  const found = [...checkOrders(communicator), ...checkNeighbours(communicator), ...checkTrees(communicator)];
  return [...checkCounts(communicator), ...mergeAlike(found, channelCount(communicator), cutLines.size > 0)];
}

/** A finding about one channel. */
interface ChannelFinding extends LogFinding {
  readonly channel: number;
  readonly communicator: string;
}

function channelCount({ ranks }: LoggedCommunicator): number {
  let most = 1;
  for (const { ring, trees, ringOrders } of ranks.values())
    most = Math.max(most, ring.length / 2, trees.length / TREE_STRIDE, ringOrders.size);
  return most;
}

/**
 * True if two numbers may be equal apart from lost or added digits: of a line that was cut within its last number, or that
 * another continues.
 */
function mayBeEqual(a: number, b: number): boolean {
  return String(a).startsWith(String(b)) || String(b).startsWith(String(a));
}

function checkCounts({ ranks, id }: LoggedCommunicator): LogFinding[] {
  const byCount = new Map<number, { readonly ranks: number[]; readonly place: LogPlace }>();
  for (const { rank, channelCounts } of ranks.values()) {
    if (channelCounts === undefined) continue;
    const known = byCount.get(channelCounts.coll);
    if (known === undefined) byCount.set(channelCounts.coll, { ranks: [rank], place: channelCounts.place });
    else known.ranks.push(rank);
  }
  if (byCount.size < 2) return [];
  return [
    {
      code: 'channels-differ',
      severity: 'error',
      communicator: id,
      ranks: [...byCount.values()].flatMap((each) => each.ranks).sort((a, b) => a - b),
      problem: `ranks have different numbers of channels: ${[...byCount].map(([count, each]) => `${count} on ${namedRanks(each.ranks)}`).join(', ')}`,
      cause:
        'NCCL takes the lowest of all ranks, so they can only differ where versions or settings (NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS) do',
      remedy: 'compare version and environment of these ranks',
      places: [...byCount.values()].map(({ place }) => place),
    },
  ];
}

/** Checks that `Channel 00/16 : 0 1 …` names every rank once, and agrees with the neighbours that ranks report. */
function checkOrders({ ranks, nRanks, nRanksKnown, id }: LoggedCommunicator): ChannelFinding[] {
  const findings: ChannelFinding[] = [];
  for (const { ringOrders } of ranks.values()) {
    for (const [channel, { ranks: listed, place, cut }] of ringOrders) {
      // Text after the last rank of the ring is the rest of another line; the last number may lack digits.
      const order = nRanksKnown ? listed.slice(0, nRanks) : listed;
      const sure = order.slice(0, -1);
      const twice = firstTwice(sure);
      // No ring has such a rank: the line contains a piece of another.
      if (nRanksKnown && sure.some((rank) => rank >= nRanks)) continue;
      if (twice !== undefined) {
        findings.push({
          channel,
          code: 'ring-open',
          severity: 'error',
          communicator: id,
          ranks: [twice],
          problem: `ring ${channel} visits rank ${twice} twice, so it misses another of the ${nRanks}`,
          cause: 'a graph file (NCCL_GRAPH_FILE) that was made for another machine, or lines of two jobs in one log',
          remedy: 'remove NCCL_GRAPH_FILE, also from /etc/nccl.conf; keep the output of jobs apart',
          places: [place],
        });
        continue;
      }
      if (cut) continue;
      const contradiction = sure.findIndex((rank, position) => {
        const next = ranks.get(rank)?.ring[channel * 2 + 1] ?? -1;
        const listedNext = order[position + 1] ?? next;
        return next >= 0 && !mayBeEqual(next, listedNext);
      });
      if (contradiction >= 0) {
        const rank = sure[contradiction] ?? 0;
        const own = ranks.get(rank);
        findings.push({
          channel,
          code: 'ring-contradiction',
          severity: 'error',
          communicator: id,
          ranks: [rank],
          problem: `on ring ${channel} rank 0 has ${order[contradiction + 1] ?? ''} after ${rank}, and rank ${rank} says that ${own?.ring[channel * 2 + 1] ?? ''} is next`,
          cause: 'ranks did not merge the same graphs: versions or settings differ between them',
          remedy: 'compare version, NCCL_* variables and topology files of these ranks',
          places: [place, ...(own?.ringPlace === undefined ? [] : [own.ringPlace])],
        });
      }
    }
  }
  return findings;
}

function firstTwice(ranks: readonly number[]): number | undefined {
  const seen = new Set<number>();
  for (const rank of ranks) {
    if (seen.has(rank)) return rank;
    seen.add(rank);
  }
  return undefined;
}

/** Checks that neighbours confirm each other, and that every ring closes. */
function checkNeighbours({ ranks, nRanks, nRanksKnown, id }: LoggedCommunicator): ChannelFinding[] {
  const findings: ChannelFinding[] = [];
  let channels = 0;
  for (const { ring } of ranks.values()) channels = Math.max(channels, ring.length / 2);
  for (let channel = 0; channel < channels; channel++) {
    const next = new Map<number, number>();
    for (const { rank, ring, ringPlace } of ranks.values()) {
      const after = ring[channel * 2 + 1] ?? -1;
      if (after < 0) continue;
      next.set(rank, after);
      const other = ranks.get(after);
      const back = other?.ring[channel * 2] ?? -1;
      if (other === undefined || back < 0 || mayBeEqual(back, rank)) continue;
      // If `after` lost digits at the end of its line, another rank's neighbour must confirm it.
      const isCut = [...lookalikes(after, nRanks)].some((meant) =>
        [rank, -1].includes(ranks.get(meant)?.ring[channel * 2] ?? -1),
      );
      if (isCut) continue;
      findings.push({
        channel,
        code: 'ring-contradiction',
        severity: 'error',
        communicator: id,
        ranks: [rank, after],
        problem: `on ring ${channel} rank ${rank} sends to ${after}, but ${after} receives from ${back}`,
        cause: 'ranks did not merge the same graphs: versions or settings differ between them',
        remedy: 'compare version, NCCL_* variables and topology files of these ranks',
        places: [ringPlace, other.ringPlace].filter((place) => place !== undefined),
      });
    }
    if (!nRanksKnown || next.size !== nRanks || new Set(next.values()).size !== nRanks) continue;
    let length = 1;
    for (let rank = next.get(0); rank !== undefined && rank !== 0 && length <= nRanks; rank = next.get(rank)) length++;
    if (length < nRanks) {
      findings.push({
        channel,
        code: 'ring-open',
        severity: 'error',
        communicator: id,
        problem: `ring ${channel} comes back to rank 0 after ${counted(length, 'rank')} of ${nRanks}`,
        cause: 'the graphs of hosts do not fit together',
        remedy: 'look for different topology or graph files on the hosts',
        places: ranks.get(0)?.ringPlace === undefined ? [] : [ranks.get(0)?.ringPlace].filter((place) => place !== undefined),
      });
    }
  }
  return findings;
}

/** The ranks that `value` may have been before digits were lost or added at its end. */
function* lookalikes(value: number, nRanks: number): Generator<number> {
  for (let shorter = Math.floor(value / 10); shorter > 0; shorter = Math.floor(shorter / 10)) yield shorter;
  if (value <= 0) return;
  for (let step = 10; value * step < nRanks; step *= 10) {
    for (let rank = value * step; rank < Math.min(nRanks, (value + 1) * step); rank++) yield rank;
  }
}

function checkTrees({ ranks, nRanks, id }: LoggedCommunicator): ChannelFinding[] {
  const findings: ChannelFinding[] = [];
  for (const { rank, trees, treesPlace } of ranks.values()) {
    for (let channel = 0; channel * TREE_STRIDE < trees.length; channel++) {
      const up = trees[channel * TREE_STRIDE + 3] ?? UNKNOWN;
      const isLast = (channel + 1) * TREE_STRIDE === trees.length;
      const parent = ranks.get(up);
      if (parent !== undefined && parent.trees.length > channel * TREE_STRIDE) {
        const children = [...parent.trees.subarray(channel * TREE_STRIDE, channel * TREE_STRIDE + 3)];
        const isCut = isLast && lookalikes(up, nRanks).next().done === false;
        const isTold = children.every((child) => child !== UNKNOWN && child < nRanks);
        if (isTold && !children.includes(rank) && !isCut) {
          findings.push(
            contradiction(
              id,
              channel,
              rank,
              up,
              `hangs below ${up}, which has ${children.filter((child) => child >= 0).join(' and ') || 'no rank'} below it`,
              [treesPlace, parent.treesPlace],
            ),
          );
        }
      }
      for (const child of trees.subarray(channel * TREE_STRIDE, channel * TREE_STRIDE + 3)) {
        const below = ranks.get(child);
        const above = below?.trees[channel * TREE_STRIDE + 3] ?? UNKNOWN;
        if (below === undefined || above === UNKNOWN || above >= nRanks || mayBeEqual(above, rank)) continue;
        // -1 is complete; a cut line would leave `-`, which is no number.
        findings.push(
          contradiction(id, channel, rank, child, `has ${child} below it, which hangs below ${above < 0 ? 'no rank' : above}`, [
            treesPlace,
            below.treesPlace,
          ]),
        );
      }
    }
  }
  return findings;
}

function contradiction(
  id: string,
  channel: number,
  rank: number,
  other: number,
  says: string,
  places: readonly (LogPlace | undefined)[],
): ChannelFinding {
  return {
    channel,
    code: 'tree-contradiction',
    severity: 'error',
    communicator: id,
    ranks: [rank, other],
    problem: `on tree ${channel} rank ${rank} ${says}`,
    cause: 'ranks did not merge the same graphs: versions or settings differ between them',
    remedy: 'compare version, NCCL_* variables and topology files of these ranks',
    places: places.filter((place) => place !== undefined),
  };
}

/**
 * One finding of each code, in the words of the first, because a wrong graph is wrong on all channels. Where lines are torn, a
 * few channels may differ only by a digit from another line.
 */
function mergeAlike(findings: readonly ChannelFinding[], nChannels: number, hasTornLines: boolean): LogFinding[] {
  const merged = new Map<string, ChannelFinding[]>();
  for (const finding of findings) {
    const alike = merged.get(finding.code);
    if (alike === undefined) merged.set(finding.code, [finding]);
    else alike.push(finding);
  }
  return [...merged.values()].flatMap((alike): LogFinding[] => {
    const [first] = alike;
    if (first === undefined) return [];
    const channels = new Set(alike.map(({ channel }) => channel));
    const isDoubtful = hasTornLines && channels.size < Math.max(2, nChannels / 4);
    const { code, communicator, remedy } = first;
    return [
      {
        code,
        communicator,
        remedy,
        severity: isDoubtful ? 'warning' : first.severity,
        ranks: [...new Set(alike.flatMap(({ ranks = [] }) => ranks))].sort((a, b) => a - b),
        problem:
          alike.length === 1
            ? first.problem
            : `${first.problem}; and ${alike.length - 1} more such on ${counted(channels.size, 'channel')}`,
        cause: isDoubtful ? 'lines are torn in this log: a number may have taken a digit from another line' : first.cause,
        places: alike.flatMap(({ places }) => places).slice(0, 8),
      },
    ];
  });
}
