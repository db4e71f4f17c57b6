import { InputError } from '../../../errors.js';
import type { FileKind } from '../../readers/classify.js';
import { readCopyJson } from '../../readers/copy-test.js';
import { type FlightRecording, isFlightRecording, readFlightRecording } from '../../readers/flight.js';
import type { AnyToolOutput } from '../../readers/formats.js';
import { parseJson } from '../../readers/json.js';
import { plainValue, readPickle } from '../../readers/pickle.js';
import { parseRasJson, type RasReport } from '../../readers/ras.js';
import { readInspector, readTrace, type TimedCall } from '../../readers/timeline.js';
import { utf8Text } from '../../readers/utf8.js';
import { parseXml } from '../../topology/xml/parse.js';
import type { XmlElement } from '../../topology/xml/tree.js';
import type { LogPlace } from '../lines/line.js';
import { type RecordedJob, replayWatch } from '../live/recording.js';

/** A topology or graph file. */
export interface GivenXml {
  readonly root: XmlElement;
  readonly notes: ReturnType<typeof parseXml>['notes'];
  readonly file: string;
  readonly place: LogPlace;
}

/** Facts from files that are not read line by line. */
export interface WholeFiles {
  readonly recordings: readonly FlightRecording[];
  readonly ras: readonly RasReport[];
  readonly timed: readonly TimedCall[];
  readonly topologies: readonly GivenXml[];
  readonly graphs: readonly GivenXml[];
  /** Jobs of recordings of `tccl watch`. */
  readonly watched: readonly RecordedJob[];
  /** Outputs of tools in JSON. */
  readonly tools: readonly AnyToolOutput[];
}

/** Collects facts of such files. */
export class WholeFileReader implements WholeFiles {
  readonly recordings: FlightRecording[] = [];
  readonly ras: RasReport[] = [];
  readonly timed: TimedCall[] = [];
  readonly topologies: GivenXml[] = [];
  readonly graphs: GivenXml[] = [];
  readonly watched: RecordedJob[] = [];
  readonly tools: AnyToolOutput[] = [];
  /** Parts of recordings that traces hold, by rank: one of several hosts or communicators is in several files. */
  readonly #traced = new Map<number, FlightRecording>();

  /**
   * @returns the kind of the file in words
   * @throws InputError where it is none that can be read
   */
  read(kind: Exclude<FileKind, 'text' | 'binary'>, bytes: Uint8Array, name: string, place: LogPlace): string {
    switch (kind) {
      case 'pickle':
        return this.#readValue(plainValue(readPickle(bytes)), name, place);
      case 'json':
        return this.#readJson(utf8Text(bytes), name, place);
      case 'inspector':
      case 'trace': {
        const { timed, recordings } = (kind === 'trace' ? readTrace : readInspector)(utf8Text(bytes), place.file);
        for (const call of timed) this.timed.push(call);
        for (const recording of recordings) {
          const known = this.#traced.get(recording.rank);
          this.#traced.set(
            recording.rank,
            known === undefined ? recording : { ...known, calls: [...known.calls, ...recording.calls] },
          );
        }
        return kind;
      }
      case 'watch':
        return this.#readWatch(utf8Text(bytes), place);
      case 'xml':
        return this.#readXml(utf8Text(bytes), name, place);
    }
  }

  finish(): WholeFiles {
    const { recordings, ras, timed, topologies, graphs, watched, tools } = this;
    return { recordings: [...recordings, ...this.#traced.values()], ras, timed, topologies, graphs, watched, tools };
  }

  #readJson(text: string, name: string, place: LogPlace): string {
    // JSON of RAS may lack commas.
    if (!text.includes('"nccl_version"') || !text.includes('"communicators"'))
      return this.#readValue(parseJson(text), name, place);
    this.ras.push(parseRasJson(text, place));
    return 'ras';
  }

  /** Reports of `tccl watch`: the last two of each job that did not move at the end. */
  #readWatch(text: string, place: LogPlace): string {
    for (const job of replayWatch(text, place)) {
      const {
        status: { state },
        reports,
      } = job;
      this.watched.push(job);
      if (state !== 'healthy' && state !== 'unknown') this.ras.push(...reports);
    }
    return 'recording of tccl watch';
  }

  #readValue(value: unknown, name: string, place: LogPlace): string {
    if (isFlightRecording(value)) {
      this.recordings.push(readFlightRecording(value, name, place));
      return 'flight recording';
    }
    const copies = readCopyJson(value, place);
    if (copies !== undefined) {
      this.tools.push({ tool: 'nvbandwidth', facts: copies, host: '', place });
      return 'results of nvbandwidth';
    }
    if (isTestResults(value))
      throw new InputError('CONTENT', 'results of nccl-tests; tccl expect CLUSTER FILE compares them with a prediction');
    throw new InputError('CONTENT', 'JSON of a kind that tccl does not know');
  }

  #readXml(text: string, name: string, place: LogPlace): string {
    const { root, notes } = parseXml(text);
    if (root.name === 'graphs') {
      this.graphs.push({ root, notes, file: name, place });
      return 'graph file';
    }
    if (root.name !== 'system') throw new InputError('CONTENT', `XML with the root <${root.name}>, which tccl does not know`);
    this.topologies.push({ root, notes, file: name, place });
    return 'topology';
  }
}

/** JSON of nccl-tests (-J). */
function isTestResults(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'results' in value && Array.isArray(value.results);
}
