import { parseJson, textOf } from './json.js';

/** Rows of a database. */
export interface Database {
  /** Columns of a table; none where there is no such table. */
  readonly columns: (table: string) => readonly string[];
  readonly rows: (query: string) => Iterable<Row>;
}

type Row = Readonly<Record<string, unknown>>;

/** A call of NCCL's API with the data of its NVTX range; undefined where the export lacks them. */
export interface NsightOperation {
  /** Without `nccl`: `AllReduce`, `Send`. */
  readonly name: string;
  /** Id of the communicator, the same on all of its ranks. */
  readonly communicator: string | undefined;
  /** As NCCL's API counts it: for collectives with parts, that of one rank. */
  readonly bytes: number | undefined;
  /** Of a send or a receive: the other rank, by its number in the communicator. */
  readonly peer: number | undefined;
}

/** A kernel of NCCL, with the operations that it carries out. */
export interface NsightCall {
  /** `AllReduce`, of the kernel's name. */
  readonly kernel: string;
  readonly operations: readonly NsightOperation[];
  readonly stream: string;
  readonly startUs: number;
  readonly durationUs: number;
}

/** One GPU of one process. */
export interface NsightGpu {
  readonly process: number;
  readonly device: number;
  /** In the order of their starts. */
  readonly calls: readonly NsightCall[];
  /** Times of other kernels and copies, µs, ascending by start. */
  readonly compute: readonly (readonly [startUs: number, endUs: number])[];
  /** Communicators that it became a member of. */
  readonly memberships: readonly Membership[];
}

/** A rank of a communicator. */
export interface Membership {
  readonly communicator: string;
  readonly rank: number;
  readonly nRanks: number;
}

const KERNELS = 'CUPTI_ACTIVITY_KIND_KERNEL';
/** Ids of threads have that of their process above 24 bits. */
const PROCESS_STEP = 0x1000000;
/** Ranges that a thread begins and ends (`NvtxPushPopRange`). */
const RANGE = 59;

/** True for a database that Nsight Systems exported (`nsys export --type sqlite`). */
export function isNsight({ columns }: Database): boolean {
  return columns('StringIds').length > 0 && columns('META_DATA_EXPORT').length > 0;
}

/**
 * Reads the kernels of an export of Nsight Systems (NVIDIA, Nsight Systems User Guide, «SQLite Schema Reference»). NCCL marks its
 * calls with NVTX ranges; their sizes and communicators are in `binaryData`, which is exported with `--include-blobs=true`.
 */
export function readNsight(database: Database): NsightGpu[] {
  if (database.columns(KERNELS).length === 0) return [];
  const gpus = new Map<string, { process: number; device: number; calls: Launched[]; compute: [number, number][] }>();
  const gpuOf = (row: Row) => {
    const [process, device] = [Math.floor(numberOf(row['globalPid']) / PROCESS_STEP), numberOf(row['deviceId'])];
    const key = `${process} ${device}`;
    const known = gpus.get(key) ?? { process, device, calls: [], compute: [] };
    gpus.set(key, known);
    return known;
  };
  const all = `SELECT k.start, k.end, k.deviceId, k.streamId, k.correlationId, k.globalPid, s.value AS name
    FROM ${KERNELS} k JOIN StringIds s ON s.id = k.shortName ORDER BY k.start`;
  for (const row of database.rows(all)) {
    const [startUs, endUs] = timesOf(row);
    const [, kernel] = /^nccl(?:Dev)?Kernel_?([A-Za-z]+)/.exec(textOf(row['name'])) ?? [];
    const gpu = gpuOf(row);
    if (kernel === undefined) gpu.compute.push([startUs, endUs]);
    else
      gpu.calls.push({
        ...{ kernel, stream: String(numberOf(row['streamId'])), startUs, durationUs: endUs - startUs },
        correlation: `${gpu.process} ${numberOf(row['correlationId'])}`,
      });
  }
  for (const table of ['CUPTI_ACTIVITY_KIND_MEMCPY', 'CUPTI_ACTIVITY_KIND_MEMSET'])
    if (database.columns(table).length > 0)
      for (const row of database.rows(`SELECT start, end, deviceId, globalPid FROM ${table}`))
        gpuOf(row).compute.push(timesOf(row));
  const { operations, members } = rangesOf(database);
  const launches = launchesOf(database);
  const carried = carriedBy(
    [...gpus.values()].flatMap(({ calls }) => calls),
    launches,
    operations,
  );
  const devices = new Map<number, number>();
  for (const { process } of gpus.values()) devices.set(process, (devices.get(process) ?? 0) + 1);
  return [...gpus.values()].map(({ process, device, calls, compute }) => ({
    ...{ process, device, compute: compute.sort((a, b) => a[0] - b[0]) },
    calls: calls.map(({ correlation, ...call }) => ({ ...call, operations: carried.get(correlation) ?? [] })),
    memberships: members.filter((each) => each.process === process && (devices.get(process) === 1 || each.device === device)),
  }));
}

type Launched = Omit<NsightCall, 'operations'> & { readonly correlation: string };

/** An operation on a thread, in time. */
interface Called extends NsightOperation {
  readonly thread: number;
  readonly atNs: number;
}

interface Launch {
  readonly thread: number;
  readonly atNs: number;
  readonly correlation: string;
}

function launchesOf(database: Database): Launch[] {
  if (database.columns('CUPTI_ACTIVITY_KIND_RUNTIME').length === 0) return [];
  const query = `SELECT r.start, r.globalTid, r.correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId IN
    (SELECT k.correlationId FROM ${KERNELS} k JOIN StringIds s ON s.id = k.shortName WHERE s.value LIKE 'nccl%')`;
  return [...database.rows(query)].map((row) => {
    const thread = numberOf(row['globalTid']);
    const correlation = `${Math.floor(thread / PROCESS_STEP)} ${numberOf(row['correlationId'])}`;
    return { thread, correlation, atNs: numberOf(row['start']) };
  });
}

/**
 * Operations of each kernel, by its correlation. A thread makes operations, then launches their kernels, within the last of them
 * or at the end of their group.
 */
function carriedBy(
  kernels: readonly Launched[],
  launches: readonly Launch[],
  operations: readonly Called[],
): ReadonlyMap<string, readonly NsightOperation[]> {
  const kernelOf = new Map(kernels.map(({ correlation, kernel }) => [correlation, kernel]));
  const events = [
    ...operations.map((operation) => ({ ...operation, operation })),
    ...launches.filter(({ correlation }) => kernelOf.has(correlation)).map((launch) => ({ ...launch, operation: undefined })),
  ].sort((a, b) => a.thread - b.thread || a.atNs - b.atNs);
  const carried = new Map<string, readonly NsightOperation[]>();
  let thread = -1;
  let pending: NsightOperation[] = [];
  let launched: string[] = [];
  const finish = () => {
    const byKernel = new Map<string, string[]>();
    for (const correlation of launched) {
      const kernel = kernelOf.get(correlation) ?? '';
      byKernel.set(kernel, [...(byKernel.get(kernel) ?? []), correlation]);
    }
    for (const [kernel, own] of byKernel) {
      const fitting = pending.filter(({ name }) => kernelFor(name) === kernel);
      // As many kernels as operations are in the same order; else the first one has all.
      own.forEach((correlation, place) => {
        const given = fitting.length === own.length ? fitting.slice(place, place + 1) : place === 0 ? fitting : [];
        carried.set(correlation, given);
      });
    }
    pending = [];
    launched = [];
  };
  for (const event of events) {
    if (event.thread !== thread || (event.operation !== undefined && launched.length > 0)) finish();
    thread = event.thread;
    if (event.operation !== undefined) pending.push(event.operation);
    else if ('correlation' in event) launched.push(event.correlation);
  }
  finish();
  return carried;
}

/** The kernel's name for an operation: messages have one together. */
function kernelFor(name: string): string {
  return /^(?:Send|Recv|AlltoAll|Gather|Scatter)$/.test(name) ? 'SendRecv' : name;
}

/** Names of operations that kernels carry out. */
const OPERATION = /^nccl(AllReduce|AllGather|ReduceScatter|Broadcast|Bcast|Reduce|Send|Recv|AlltoAll|Gather|Scatter)$/;

/** NCCL's ranges: operations, and communicators that processes become members of. */
function rangesOf(database: Database): {
  readonly operations: readonly Called[];
  readonly members: readonly (Membership & { readonly process: number; readonly device: number })[];
} {
  const columns = database.columns('NVTX_EVENTS');
  if (columns.length === 0) return { operations: [], members: [] };
  const payloads = ['binaryData', 'jsonText'].filter((name) => columns.includes(name)).map((name) => `, n.${name}`);
  const query = `SELECT n.start, n.globalTid, coalesce(n.text, s.value) AS name${payloads.join('')}
    FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId
    WHERE n.eventType = ${RANGE} AND coalesce(n.text, s.value) LIKE 'nccl%'`;
  const fieldsOf = schemasOf(database);
  const operations: Called[] = [];
  const members = new Map<string, Membership & { process: number; device: number }>();
  for (const row of database.rows(query)) {
    const thread = numberOf(row['globalTid']);
    const fields = fieldsOf(row);
    const communicator = fields.get('NCCL communicator ID');
    const [rank, nRanks] = [fields.get('Rank'), fields.get('No. of ranks')];
    if (communicator !== undefined && rank !== undefined && nRanks !== undefined) {
      const [process, device] = [Math.floor(thread / PROCESS_STEP), Number(fields.get('CUDA device') ?? 0)];
      const member = { process, device, communicator: idText(communicator), rank: Number(rank), nRanks: Number(nRanks) };
      members.set(`${process} ${device} ${member.communicator}`, member);
    }
    const [, name] = OPERATION.exec(textOf(row['name'])) ?? [];
    if (name === undefined) continue;
    const [bytes, peer] = [fields.get('Message size [bytes]'), fields.get('Peer rank')];
    operations.push({
      ...{ name: name === 'Bcast' ? 'Broadcast' : name, thread, atNs: numberOf(row['start']) },
      communicator: communicator === undefined ? undefined : idText(communicator),
      bytes: bytes === undefined ? undefined : Number(bytes),
      peer: peer === undefined ? undefined : Number(peer),
    });
  }
  return { operations, members: [...members.values()] };
}

function idText(communicator: number | bigint): string {
  return `0x${communicator.toString(16)}`;
}

/** Types of entries of a payload (`nvToolsExtPayload.h`): four and eight bytes. */
const words: ReadonlySet<number> = new Set([5, 6, 15, 16]);
const longWords: ReadonlySet<number> = new Set([7, 8, 9, 10, 17, 18, 22]);
/** A payload begins with four numbers: its domain, its schema, its length, and where it is. */
const HEADER_BYTES = 32;

/** A function that reads the payload of a range: numbers by their labels, as `Message size [bytes]`. */
function schemasOf(database: Database): (row: Row) => ReadonlyMap<string, number | bigint> {
  const schemas = new Map<string, { readonly name: string; readonly type: number; readonly offset: number }[]>();
  if (database.columns('NVTX_PAYLOAD_SCHEMA_ENTRIES').length > 0)
    for (const row of database.rows('SELECT domainId, schemaId, type, name, offset FROM NVTX_PAYLOAD_SCHEMA_ENTRIES')) {
      const key = `${numberOf(row['domainId'])} ${numberOf(row['schemaId'])}`;
      const entry = { name: textOf(row['name']), type: numberOf(row['type']), offset: numberOf(row['offset']) };
      schemas.set(key, [...(schemas.get(key) ?? []), entry]);
    }
  return (row) => {
    const blob = row['binaryData'];
    if (!(blob instanceof Uint8Array) || blob.length < HEADER_BYTES) return jsonFields(row['jsonText']);
    const view = new DataView(blob.buffer, blob.byteOffset, blob.length);
    const head = [0, 8, 16, 24].map((at) => Number(view.getBigUint64(at, true)));
    const [domain = 0, schema = 0, , offset = HEADER_BYTES] = head;
    const fields = new Map<string, number | bigint>();
    for (const { name, type, offset: own } of schemas.get(`${domain} ${schema}`) ?? []) {
      const at = offset + own;
      if (longWords.has(type) && at + 8 <= blob.length) fields.set(name, view.getBigUint64(at, true));
      else if (words.has(type) && at + 4 <= blob.length) fields.set(name, view.getInt32(at, true));
    }
    return fields;
  };
}

function jsonFields(text: unknown): ReadonlyMap<string, number> {
  if (typeof text !== 'string' || !text.startsWith('{')) return new Map();
  const value: unknown = parseJson(text);
  if (typeof value !== 'object' || value === null) return new Map();
  return new Map(
    Object.entries(value).flatMap(([name, given]): [string, number][] => (typeof given === 'number' ? [[name, given]] : [])),
  );
}

/** Start and end in µs, of nanoseconds. */
function timesOf(row: Row): [startUs: number, endUs: number] {
  return [numberOf(row['start']) / 1000, numberOf(row['end']) / 1000];
}

function numberOf(value: unknown): number {
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : 0;
}
