import { InputError } from '../../errors.js';
import { type ChakraNode, isChakra, isChakraJson, readChakra, readChakraJson } from '../readers/chakra.js';
import { classify, type FileKind } from '../readers/classify.js';
import { isFlightRecording, readFlightRecording } from '../readers/flight.js';
import { parseJson } from '../readers/json.js';
import { isKinetoTrace, readKineto } from '../readers/kineto.js';
import { type Database, isNsight, readNsight } from '../readers/nsight.js';
import { plainValue, readPickle } from '../readers/pickle.js';
import { readInspector, type TimedCall } from '../readers/timeline.js';
import { utf8Text } from '../readers/utf8.js';
import { type ChakraFile, ofChakra } from './of-chakra.js';
import { type NsightFile, ofNsight } from './of-nsight.js';
import { ofFlight, ofInspector, ofKineto, type RankTrace } from './trace.js';

/** Formats that are read, for messages. */
export const TRACE_FORMATS =
  'profiles of PyTorch, its flight recordings, records of NCCL Inspector, databases of Nsight Systems, and traces of Chakra';

/** First bytes of a database of SQLite. */
const SQLITE = 'SQLite format 3';
/** Bytes by which a file is recognised. */
const HEAD_BYTES = 65_536;

/** True for the first bytes of a database of SQLite, as Nsight Systems exports it. */
export function isDatabase(head: Uint8Array): boolean {
  return utf8Text(head.subarray(0, SQLITE.length)) === SQLITE;
}

/**
 * Collects the traces of a job from files of any of the formats: profiles and flight recordings of PyTorch, records of NCCL
 * Inspector, databases of Nsight Systems, and execution traces of Chakra.
 *
 *     const reader = new TraceReader();
 *     for (const [name, bytes] of files) reader.read(bytes, name);
 *     const replay = replayJob(measureJob(reader.finish()), { title: '2 x dgx-h100', cluster, parameters });
 */
export class TraceReader {
  readonly #traces: RankTrace[] = [];
  readonly #timed: TimedCall[] = [];
  readonly #chakra: ChakraFile[] = [];
  readonly #nsight: NsightFile[] = [];
  #inspected = '';

  /**
   * Reads a file.
   *
   * @param bytes the whole file, not compressed
   * @param name of the file: its rank is taken from it where the trace has none (`rank3.json`)
   * @param kind of the file, where its first bytes were looked at before
   * @throws InputError for a file that is no trace, or lacks what a replay needs
   */
  read(bytes: Uint8Array, name: string, kind: FileKind = classify(bytes.subarray(0, HEAD_BYTES))): void {
    // Protocol buffers with few control characters look like text.
    if ((kind === 'binary' || kind === 'text') && isChakra(bytes)) {
      this.#addChakra(readChakra(bytes), name);
      return;
    }
    switch (kind) {
      case 'inspector':
        for (const call of readInspector(utf8Text(bytes), 0).timed) this.#timed.push(call);
        this.#inspected = name;
        return;
      case 'pickle':
        this.#readValue(plainValue(readPickle(bytes)), name);
        return;
      case 'json':
        this.#readValue(parseJson(utf8Text(bytes)), name);
        return;
      case 'trace':
        throw new InputError('CONTENT', "a trace of NCCL's example profiler or of tccl, which has no sizes of calls");
      default:
        if (isDatabase(bytes))
          throw new InputError('CONTENT', 'a database, as Nsight Systems exports it: give readDatabase a connection to it');
        throw new InputError('CONTENT', `no trace: replayed are ${TRACE_FORMATS}`);
    }
  }

  /**
   * Reads a database that Nsight Systems exported.
   *
   * @param database a connection to it, such as one of node:sqlite
   * @throws InputError for another database, and for one without a kernel of NCCL
   */
  readDatabase(database: Database, name: string): void {
    if (!isNsight(database)) throw new InputError('CONTENT', 'a database that Nsight Systems did not export');
    const gpus = readNsight(database);
    if (gpus.every(({ calls }) => calls.length === 0)) throw new InputError('CONTENT', 'a database without a kernel of NCCL');
    this.#nsight.push({ name, gpus, rank: rankIn(name) });
  }

  /** The traces, one or several for each rank. */
  finish(): readonly RankTrace[] {
    return [...this.#traces, ...ofInspector(this.#timed, this.#inspected), ...ofNsight(this.#nsight), ...ofChakra(this.#chakra)];
  }

  #addChakra(nodes: readonly ChakraNode[], name: string): void {
    // ASTRA-sim names files PREFIX.RANK.et.
    const [, rank] = /\.(\d{1,7})\.(?:et|json)$/.exec(name) ?? [];
    this.#chakra.push({ nodes, name, rank: rank === undefined ? (rankIn(name) ?? this.#chakra.length) : Number(rank) });
  }

  #readValue(value: unknown, name: string): void {
    if (isKinetoTrace(value)) {
      const profile = readKineto(value);
      if (profile.calls.length === 0) throw new InputError('CONTENT', 'a profile without a kernel of NCCL');
      this.#traces.push(ofKineto(profile, name, rankIn(name) ?? this.#traces.length));
    } else if (isFlightRecording(value)) {
      const trace = ofFlight(readFlightRecording(value, name, { file: 0, line: 1 }), name);
      if (trace.calls.length === 0) throw new InputError('CONTENT', 'a flight recording without times of calls');
      this.#traces.push(trace);
    } else if (isChakraJson(value)) this.#addChakra(readChakraJson(value), name);
    else if (isTorchGraph(value))
      throw new InputError(
        'CONTENT',
        "PyTorch's execution graph, which has no times of the GPU: give the profile of the same run, or the trace that chakra_converter makes of both",
      );
    else throw new InputError('CONTENT', `JSON of a kind that is not replayed: give ${TRACE_FORMATS}`);
  }
}

/** The rank in a file's name. */
function rankIn(name: string): number | undefined {
  const [, rank] = /rank[-_ ]?(\d{1,7})/i.exec(name) ?? [];
  return rank === undefined ? undefined : Number(rank);
}

function isTorchGraph(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'schema' in value && /chakra/i.test(String(value.schema));
}
