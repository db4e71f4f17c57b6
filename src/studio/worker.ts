import { describeError, InputError } from '../errors.js';
import type { LogModel } from '../planner/log/job/model.js';
import { incidentPictures } from './parts/incident.js';
import { partOf } from './parts/part.js';
import { withControls } from './controls.js';
import { excerptAt } from './excerpt.js';
import { notKnown, refuseWatchOutput } from './not-known.js';
import { inspectionIn, shownInspection } from './inspected.js';
import { diagnosed, readJob, type ReadJob, replayOnly, textOf, withReplay } from './log.js';
import type { OpenFile, Reply, Request, Shown, ShownAnswer, ShownLog } from './messages.js';
import { answerTo, type Planned, planned, shownPlan } from './planned.js';
import { replayed, type Traced, tracedJob } from './replayed.js';
import { type NamedText, refuseOtherCount, sourceOf, type Texts } from './source.js';
import { filesOf, type StudioState } from './state.js';

/** Answers requests by replies to `post`, one after the other; a newer request ends the worker. */
export function serve(post: (reply: Reply) => void): (request: Request) => void {
  const desk = new Desk();
  return (request) => {
    const { id } = request;
    const report = (text: string) => post({ id, kind: 'progress', text });
    const send = (isLast: boolean) => (shown: Shown) => post({ id, kind: 'shown', shown, isLast });
    desk
      .show(request, report, send(false))
      .then(send(true), (error: unknown) =>
        post({ id, kind: 'error', message: withControls(describeError(error)), excerpt: excerptAt(error, desk.texts) }),
      );
  };
}

/** Plans that are kept: the present one, the one it is compared with, and those before it, for Undo. */
const MOST_PLANS = 6;

/** Views of a file that says nothing. */
const nothingOf = { plan: undefined, log: undefined, unplanned: undefined, part: undefined, answer: undefined } as const;

/** The files of a job as they were read, by their keys. */
interface Job {
  readonly key: string;
  readonly model: LogModel;
  readonly read: ReadJob | undefined;
  readonly traced: Traced | undefined;
}

const nothingRead = { read: undefined, traced: undefined };

/** Makes views; keeps what requests mostly share: the latest files, plans and answer. */
class Desk {
  /** The same by name, for places of errors. */
  texts: Texts = new Map();
  /** Texts of the files that the latest state named, by key. */
  #texts: ReadonlyMap<number, string> = new Map();
  #job: Job | undefined;
  /** Plans by the parts of the state and the files that they depend on, the latest last. */
  readonly #plans = new Map<string, Planned | undefined>();
  #answer: { readonly made: Planned; readonly ask: string; readonly answer: ShownAnswer } | undefined;

  /** @param early called with views without the answer, which may take seconds */
  async show({ state, width, files }: Request, report: (text: string) => void, early: (shown: Shown) => void): Promise<Shown> {
    const start = performance.now();
    const file = state.file === undefined ? undefined : files.find(({ name }) => name === state.file);
    if (state.file !== undefined && file === undefined)
      throw new InputError('FILE', `this view needs the file ${state.file}: open it, a link does not have its contents`);
    const texts = await this.#textsOf(files, filesOf(state));
    const textOfFile = (name: string | undefined): NamedText | undefined => {
      const text = name === undefined ? undefined : texts.get(name);
      return name === undefined || text === undefined ? undefined : { name, text };
    };
    const [named, other] = [textOfFile(state.file), textOfFile(state.against)];
    const keys = new Map(files.map(({ name, key }) => [name, key]));
    const plan = (each: StudioState, text: NamedText | undefined) => this.#planned(each, text, texts, keys);
    const inspection = inspectionIn(named?.text ?? '');
    if (inspection !== undefined) {
      const log = shownInspection(inspection, width);
      return { ...nothingOf, log, tookMs: performance.now() - start };
    }
    refuseWatchOutput(named);
    const { read: job, traced } = file === undefined ? nothingRead : await this.#jobOf(files, report);
    const needsTables = state.view === 'choice' && files.length > 0;
    const tables = needsTables ? (await this.#jobOf(files, report)).model.tables : [];
    const { made, unplanned } = plannedBeside(job?.log ?? (traced && replayOnly), () => plan(state, named));
    const replay = traced && replayed(traced, state.nccl, (nccl) => sourceOf({ ...state, nccl }, made && named, texts));
    const log =
      job !== undefined ? { ...job.log, ranks: incidentPictures(job, made, width), replay } : replay && withReplay(replay);
    if (made === undefined) {
      if (log !== undefined) return { ...nothingOf, log, unplanned, tookMs: performance.now() - start };
      throw notKnown(named);
    }
    refuseOtherCount(state.file ?? '', made.source.ownCount, state.nodes);
    const part = partOf({ made, state, width, file: named, against: other, tables, plan });
    const shown = { ...nothingOf, plan: shownPlan(made), log, part, tookMs: performance.now() - start };
    if (state.ask.trim() === '') return shown;
    if (this.#answer?.made !== made || this.#answer.ask !== state.ask) {
      early(shown);
      this.#answer = { made, ask: state.ask, answer: answerTo(made.source, state.ask) };
    }
    return { ...shown, answer: this.#answer.answer, tookMs: performance.now() - start };
  }

  /** Texts of those of the files that are named. */
  async #textsOf(files: readonly OpenFile[], names: readonly string[]): Promise<Texts> {
    const kept = new Map<number, string>();
    const texts = new Map<string, string>();
    for (const file of files.filter(({ name }) => names.includes(name))) {
      const text = this.#texts.get(file.key) ?? (await textOf(file));
      kept.set(file.key, text);
      texts.set(file.name, text);
    }
    this.#texts = kept;
    this.texts = texts;
    return texts;
  }

  async #jobOf(files: readonly OpenFile[], report: (text: string) => void): Promise<Job> {
    const key = files.map((file) => file.key).join(' ');
    if (this.#job?.key !== key) {
      const traced = await tracedJob(files, report);
      const others = files.filter(({ name }) => traced?.profiles.has(name) !== true);
      const model = await readJob(others, report, traced !== undefined);
      this.#job = { key, model, read: diagnosed(model), traced };
    }
    return this.#job;
  }

  #planned(
    state: StudioState,
    file: NamedText | undefined,
    texts: Texts,
    keys: ReadonlyMap<string, number>,
  ): Planned | undefined {
    const { fileSet, machine, nodes, nccl, env, gpusOff, nicsOff, edits, edited, hardware, others, windows } = state;
    const used = [file?.name ?? '', ...filesOf({ ...state, file: undefined, against: '' })].map((name) => keys.get(name));
    const key = JSON.stringify([
      file?.name ?? '',
      fileSet,
      used,
      machine,
      nodes,
      nccl,
      env,
      gpusOff,
      nicsOff,
      edits,
      edited,
      hardware,
      others,
      windows,
    ]);
    const isKept = this.#plans.has(key);
    const kept = this.#plans.get(key);
    this.#plans.delete(key);
    const made = isKept ? kept : planOf(state, file, texts);
    this.#plans.set(key, made);
    for (const oldest of this.#plans.keys()) {
      if (this.#plans.size <= MOST_PLANS) break;
      this.#plans.delete(oldest);
    }
    return made;
  }
}

/** A file that says something about a job is shown, also if what it says of a machine cannot be planned. */
function plannedBeside(
  log: ShownLog | undefined,
  plan: () => Planned | undefined,
): { readonly made: Planned | undefined; readonly unplanned: string | undefined } {
  try {
    return { made: plan(), unplanned: undefined };
  } catch (error) {
    if (log === undefined || !(error instanceof InputError)) throw error;
    return { made: undefined, unplanned: withControls(describeError(error)) };
  }
}

function planOf(state: StudioState, file: NamedText | undefined, texts: Texts): Planned | undefined {
  const source = sourceOf(state, file, texts);
  return source === undefined ? undefined : planned(source);
}
