import type { Diagnosis } from '../../planner/log/verdict/diagnosis.js';
import type { LogPlace } from '../../planner/log/lines/line.js';
import {
  type LoggedCommunicator,
  type LoggedRank,
  type LogModel,
  Stage,
  TREE_STRIDE,
  UNKNOWN,
} from '../../planner/log/job/model.js';

const stageNames = Object.fromEntries(Object.entries(Stage).map(([name, stage]) => [stage, name.toLowerCase()]));

/** The contents of a log as plain JSON; places are `{ file, line }`. */
export function logToJson(model: LogModel, { outcome, findings, verdict, open }: Diagnosis, rank: number | undefined): object {
  const { causes, consequences, remarks } = verdict;
  const at = ({ file, line }: LogPlace) => ({ file: model.files[file], line });
  const place = (optional: LogPlace | undefined) => (optional === undefined ? null : at(optional));
  const rankToJson = (record: LoggedRank) => ({
    rank: record.rank,
    host: record.process.host,
    pid: record.process.pid,
    cudaDev: record.cudaDev,
    nvmlDev: record.nvmlDev,
    busId: record.busId,
    version: record.process.version?.text,
    stage: stageNames[record.stage],
    started: place(record.started),
    completed: place(record.completed),
    last: at(record.last),
    initSeconds: record.initSeconds,
    rings: rows(record.ring, 2).map(([channel, [prev, next]]) => ({ channel, prev, next })),
    trees: rows(record.trees, TREE_STRIDE).map(([channel, [...links]]) => ({ channel, down: links.slice(0, 3), up: links[3] })),
    links: record.links.map(({ peer, end, transport, channels, place: where }) => ({
      peer,
      end,
      ...transport,
      channels,
      at: at(where),
    })),
    searches: [...record.searches.values()].map(({ result, place: where }) => ({ ...result, at: at(where) })),
    channels:
      record.channelCounts === undefined
        ? null
        : { coll: record.channelCounts.coll, nvls: record.channelCounts.nvls ?? null, p2p: record.channelCounts.p2p },
    choices: [...record.choices].map(([key, { algorithm, protocol, channels }]) => {
      const [collective, bytes] = key.split(' ');
      return { collective, bytes: Number(bytes), algorithm, protocol, channels };
    }),
  });
  const communicatorToJson = ({ id, nRanks, nRanksKnown, nNodes, isSplit, ranks }: LoggedCommunicator) => ({
    id,
    nRanks,
    nRanksKnown,
    nNodes: nNodes ?? null,
    isSplit,
    rings: [...ranks.values()].flatMap(({ ringOrders }) =>
      [...ringOrders].map(([channel, order]) => ({ channel, ranks: order.ranks, cut: order.cut, at: at(order.place) })),
    ),
    ranks: [...ranks.values()].filter((record) => rank === undefined || record.rank === rank).map(rankToJson),
  });
  return {
    outcome,
    ...(open === undefined ? {} : { open }),
    files: model.files,
    lines: model.lines,
    communicators: model.communicators.map(communicatorToJson),
    processes: model.processes.map(({ host, pid, version, environment, devices, network }) => ({
      host,
      pid,
      version: version?.text,
      network: network?.name,
      environment: Object.fromEntries([...environment].map(([name, { value }]) => [name, value])),
      devices: Object.fromEntries([...devices].map(([name, { devices: list }]) => [name, list])),
    })),
    tables: model.tables.map(({ collective, nRanks, rows: list }) => ({
      collective,
      nRanks,
      rows: list.map(({ place: where, ...row }) => ({ ...row, at: at(where) })),
    })),
    verdict: {
      causes: causes.map(({ code }) => code),
      consequences: consequences.map(({ code }) => code),
      remarks: remarks.map(({ code }) => code),
    },
    findings: findings.map(({ places, ...finding }) => ({ ...finding, at: places.map(at) })),
    left: model.left,
  };
}

/** The rows of a table by channel, without unknown ones. */
function rows(array: Int32Array, stride: number): [channel: number, row: Int32Array][] {
  return Array.from({ length: array.length / stride }, (_, channel): [number, Int32Array] => [
    channel,
    array.subarray(channel * stride, (channel + 1) * stride),
  ]).filter(([, row]) => row[0] !== UNKNOWN && !(stride === 2 && row[0] === -1));
}
