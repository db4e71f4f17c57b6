import { counted } from '../../../counted.js';
import type { LogFinding } from './finding.js';
import type { SearchResult } from '../lines/events.js';
import type { LogPlace } from '../lines/line.js';
import type { LoggedCommunicator, LogModel } from '../job/model.js';
import type { MeasuredTable } from '../job/table.js';

/** From this size on, bandwidth rather than latency decides. */
const LARGE_BYTES = 32 * 2 ** 20;
/** Shares of the search's bandwidth below which something is wrong. */
const WARNING_PART = 0.5;
const ERROR_PART = 0.2;

/** Compares tables of nccl-tests with the speeds that the searches found. */
export function checkTables({ tables, communicators }: LogModel): LogFinding[] {
  return tables.flatMap((table): LogFinding[] => [...wrongResults(table, tables), ...slow(table, communicators)]);
}

function wrongResults(table: MeasuredTable, tables: readonly MeasuredTable[]): LogFinding[] {
  const { wrong, firstWrong, collective, hosts, nRanks, rows } = table;
  if (firstWrong === undefined) return [];
  const good = rows.filter(({ wrong: count }) => count === 0);
  const bad = rows.filter(({ wrong: count }) => count > 0);
  const isBetween = hosts.length > 1;
  // With one rank a host nothing passes inside a host.
  const isNetworkOnly = isBetween && nRanks === hosts.length;
  const insideIsRight = tables.some((other) => other.hosts.length === 1 && other.collective === collective && other.wrong === 0);
  const some =
    good.length > 0 && bad.length < rows.length
      ? `; ${bad.length === 1 ? `only ${bad[0]?.bytes ?? ''} bytes are` : `${bad.length} sizes are`} wrong and ${counted(good.length, 'other is', 'others are')} right, so it goes with the protocol or algorithm that NCCL takes there`
      : '';
  return [
    {
      code: 'result-wrong',
      severity: 'error',
      kind: 'fault',
      problem: `${collective ?? 'nccl-tests'}${isBetween ? ` between ${hosts.length} hosts` : hosts.length === 1 ? ` on ${hosts[0] ?? ''}` : ''} counted ${counted(wrong, 'wrong element')}, first at ${firstWrong.bytes} bytes${some}`,
      cause:
        isNetworkOnly || insideIsRight
          ? `data is damaged on the way between hosts${insideIsRight ? ', because a run on one host is right' : ''}: a network or plugin that does not keep the order which the protocol LL128 needs (libfabric, Slingshot, a virtual machine), GPUDirect RDMA through an IOMMU, or a faulty NIC`
          : isBetween
            ? 'data is damaged inside a host (P2P through an IOMMU or ACS, a faulty GPU or link) or between hosts (LL128 over a network that does not keep order, GPUDirect RDMA)'
            : 'data is damaged inside the host: P2P through an IOMMU or ACS, a faulty GPU or NVLink',
      remedy:
        isNetworkOnly || insideIsRight
          ? 'NCCL_PROTO=^LL128, then NCCL_NET_GDR_LEVEL=LOC, one by one: the one that mends it names the way; then a newer plugin, libfabric and driver'
          : isBetween
            ? 'run it on one host first: if that is right, it is the network (NCCL_PROTO=^LL128, NCCL_NET_GDR_LEVEL=LOC one by one); else NCCL_P2P_DISABLE=1 and `dcgmi diag -r 3`'
            : 'NCCL_P2P_DISABLE=1: if it is right then, `lspci -vvv` (ACSCtl) and `cat /proc/cmdline` (IOMMU); else `dcgmi diag -r 3` on every GPU',
      places: bad.slice(0, 4).map(({ place }) => place),
    },
  ];
}

function slow(table: MeasuredTable, communicators: readonly LoggedCommunicator[]): LogFinding[] {
  const large = table.rows.filter(({ bytes }) => bytes >= LARGE_BYTES);
  const best = large.reduce(
    (a, b) => (b.busGBps > a.busGBps ? b : a),
    large[0] ?? { busGBps: 0, bytes: 0, place: { file: 0, line: 0 } },
  );
  if (large.length === 0) return [];
  const promised = promiseOf(table, communicators);
  if (promised === undefined) return [];
  const part = best.busGBps / promised.gbps;
  if (part >= WARNING_PART) return [];
  return [
    {
      code: 'bandwidth-low',
      severity: part < ERROR_PART ? 'error' : 'warning',
      kind: 'outcome',
      problem: `${table.collective ?? 'the best row'} reaches ${best.busGBps} GB/s of bus bandwidth at ${mebibytes(best.bytes)} MiB; the search found ${promised.gbps.toFixed(1)} GB/s (${promised.nChannels} channels × ${(promised.gbps / promised.nChannels).toFixed(1)}): ${Math.round(part * 100)} %`,
      cause: promised.inter
        ? 'the network gives less than its cards say: lost packets or pauses, GDR off, several flows on one link, a link that trained down'
        : 'NVLink or PCIe gives less than the topology says: links down, a shared PCIe switch, other jobs, ACS in a virtual machine',
      remedy: promised.inter
        ? 'mend what else is found here first; then measure each NIC alone with `ib_write_bw`, and look at its error counters'
        : "mend what else is found here first; then `nvidia-smi nvlink -e`, `nvidia-smi topo -m`, and tccl topo doctor on the machine's topology",
      places: [best.place, promised.place],
    },
  ];
}

/** True if the log has a search with which the table is compared. */
export function hasPromise(table: MeasuredTable, communicators: readonly LoggedCommunicator[]): boolean {
  return table.rows.some(({ bytes }) => bytes >= LARGE_BYTES) && promiseOf(table, communicators) !== undefined;
}

function promiseOf({ nRanks: wanted }: MeasuredTable, communicators: readonly LoggedCommunicator[]): Promised | undefined {
  const fitting = communicators.filter(({ nRanks }) => nRanks === (wanted ?? nRanks) && nRanks > 1);
  return fitting.map(promise).find((each) => each !== undefined);
}

interface Promised {
  readonly gbps: number;
  readonly nChannels: number;
  readonly inter: boolean;
  readonly place: LogPlace;
}

/** Expected bus bandwidth: NCCL's own estimate for the ring, which every collective can use. */
function promise({ ranks, nNodes }: LoggedCommunicator): Promised | undefined {
  const nodes = nNodes ?? new Set([...ranks.values()].map(({ process }) => process.host)).size;
  for (const { searches } of ranks.values()) {
    const ring = [...searches.values()].find(({ result }) => result.pattern === 4);
    if (ring === undefined || ring.result.nChannels === 0) continue;
    const speed = (result: SearchResult) => (nodes > 1 ? result.bwInter : result.bwIntra);
    return {
      gbps: ring.result.nChannels * speed(ring.result),
      nChannels: ring.result.nChannels,
      inter: nodes > 1,
      place: ring.place,
    };
  }
  return undefined;
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
