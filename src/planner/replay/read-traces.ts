import { InputError } from '../../errors.js';
import type { FileKind } from '../readers/classify.js';
import { isFlightRecording, readFlightRecording } from '../readers/flight.js';
import { parseJson } from '../readers/json.js';
import { isKinetoTrace, readKineto } from '../readers/kineto.js';
import { plainValue, readPickle } from '../readers/pickle.js';
import { readInspector, type TimedCall } from '../readers/timeline.js';
import { utf8Text } from '../readers/utf8.js';
import { ofFlight, ofInspector, ofKineto, type RankTrace } from './trace.js';

/** Formats that are read, for messages. */
export const TRACE_FORMATS = 'profiles of PyTorch, its flight recordings, and records of NCCL Inspector';

/** First bytes of a database of SQLite. */
const SQLITE = 'SQLite format 3';

/** Collects the traces of a job from files of any of the formats. */
export class TraceReader {
  readonly #traces: RankTrace[] = [];
  readonly #timed: TimedCall[] = [];
  #inspected = '';

  /**
   * @param kind by `classify`
   * @throws InputError for a file that is no trace, or lacks what a replay needs
   */
  read(kind: FileKind, bytes: Uint8Array, name: string): void {
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
      case 'binary':
        if (utf8Text(bytes.subarray(0, SQLITE.length)) === SQLITE)
          throw new InputError('CONTENT', `a database, as Nsight Systems exports it, which is not read: give ${TRACE_FORMATS}`);
        throw new InputError('CONTENT', `no trace: replayed are ${TRACE_FORMATS}`);
      default:
        throw new InputError('CONTENT', `no trace: replayed are ${TRACE_FORMATS}`);
    }
  }

  /** The traces, one or several for each rank. */
  finish(): readonly RankTrace[] {
    return [...this.#traces, ...ofInspector(this.#timed, this.#inspected)];
  }

  #readValue(value: unknown, name: string): void {
    if (isKinetoTrace(value)) {
      const profile = readKineto(value);
      if (profile.calls.length === 0) throw new InputError('CONTENT', 'a profile without a kernel of NCCL');
      const [, rank] = /rank[-_ ]?(\d{1,7})/i.exec(name) ?? [];
      this.#traces.push(ofKineto(profile, name, rank === undefined ? this.#traces.length : Number(rank)));
    } else if (isFlightRecording(value)) {
      const trace = ofFlight(readFlightRecording(value, name, { file: 0, line: 1 }), name);
      if (trace.calls.length === 0) throw new InputError('CONTENT', 'a flight recording without times of calls');
      this.#traces.push(trace);
    } else if (isChakra(value))
      throw new InputError(
        'CONTENT',
        'an execution trace of Chakra, which has no times of the GPU: give the profile of the same run',
      );
    else throw new InputError('CONTENT', `JSON of a kind that is not replayed: give ${TRACE_FORMATS}`);
  }
}

function isChakra(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'schema' in value && /chakra/i.test(String(value.schema));
}
