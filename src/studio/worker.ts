import { describeError, InputError } from '../errors.js';
import type { LogModel } from '../planner/log/job/model.js';
import { incidentPictures } from './parts/incident.js';
import { partOf } from './parts/part.js';
import { diagnosed, readJob, type ReadJob, textOf } from './log.js';
import type { OpenFile, Reply, Request, Shown, ShownAnswer, ShownLog } from './messages.js';
import { answerTo, type Planned, planned, shownPlan } from './planned.js';
import { type NamedText, sourceOf } from './source.js';
import type { StudioState } from './state.js';

/** Answers requests by replies to `post`, one after the other; a newer request ends the worker. */
export function serve(post: (reply: Reply) => void): (request: Request) => void {
  const desk = new Desk();
  return (request) => {
    const { id } = request;
    const report = (text: string) => post({ id, kind: 'progress', text });
    const send = (isLast: boolean) => (shown: Shown) => post({ id, kind: 'shown', shown, isLast });
    desk
      .show(request, report, send(false))
      .then(send(true), (error: unknown) => post({ id, kind: 'error', message: describeError(error) }));
  };
}

/** Plans that are kept: the present one, the one it is compared with, and those before it, for Undo. */
const MOST_PLANS = 6;

/** Makes views; keeps what requests mostly share: the latest files, plans and answer. */
class Desk {
  #text: { readonly key: number; readonly text: string } | undefined;
  #job: { readonly key: string; readonly model: LogModel; readonly read: ReadJob | undefined } | undefined;
  /** Plans by the parts of the state that they depend on, the latest last. */
  readonly #plans = new Map<string, { readonly text: string | undefined; readonly made: Planned | undefined }>();
  #answer: { readonly made: Planned; readonly ask: string; readonly answer: ShownAnswer } | undefined;

  /** @param early called with views without the answer, which may take seconds */
  async show({ state, files }: Request, report: (text: string) => void, early: (shown: Shown) => void): Promise<Shown> {
    const start = performance.now();
    const file = state.file === undefined ? undefined : files.find(({ name }) => name === state.file);
    if (state.file !== undefined && file === undefined)
      throw new InputError('FILE', `this view needs the file ${state.file}: open it, a link does not have its contents`);
    const named = file === undefined ? undefined : { name: file.name, text: await this.#textOf(file) };
    const second = files.find(({ name }) => name === state.against);
    const other = second === undefined ? undefined : { name: second.name, text: await textOf(second) };
    const job = file === undefined ? undefined : (await this.#jobOf(files, report)).read;
    const needsTables = state.view === 'choice' && files.length > 0;
    const tables = needsTables ? (await this.#jobOf(files, report)).model.tables : [];
    const made = this.#plannedBeside(job?.log, state, named);
    const log = job === undefined ? undefined : { ...job.log, ranks: incidentPictures(job, made) };
    if (made === undefined) {
      if (log !== undefined)
        return { plan: undefined, log, part: undefined, answer: undefined, tookMs: performance.now() - start };
      throw new InputError(
        'CONTENT',
        'is none of: topology (XML, as NCCL_TOPO_DUMP_FILE writes it), cluster file (YAML with machines:), log of NCCL (NCCL_DEBUG=INFO), output of nccl-tests, another file that tccl diagnose reads',
        { file: state.file ?? '' },
      );
    }
    const plan = (otherState: StudioState, text: NamedText | undefined) => this.#planned(otherState, text);
    const part = partOf({ made, state, file: named, against: other, tables, plan });
    const shown = { plan: shownPlan(made), log, part, answer: undefined, tookMs: performance.now() - start };
    if (state.ask.trim() === '') return shown;
    if (this.#answer?.made !== made || this.#answer.ask !== state.ask) {
      early(shown);
      this.#answer = { made, ask: state.ask, answer: answerTo(made.source, state.ask) };
    }
    return { ...shown, answer: this.#answer.answer, tookMs: performance.now() - start };
  }

  /** A file that says something about a job is shown, also if what it says of a machine cannot be planned. */
  #plannedBeside(log: ShownLog | undefined, state: StudioState, file: NamedText | undefined): Planned | undefined {
    try {
      return this.#planned(state, file);
    } catch (error) {
      if (log === undefined || !(error instanceof InputError)) throw error;
      return undefined;
    }
  }

  async #textOf(file: OpenFile): Promise<string> {
    if (this.#text?.key !== file.key) this.#text = { key: file.key, text: await textOf(file) };
    return this.#text.text;
  }

  async #jobOf(files: readonly OpenFile[], report: (text: string) => void) {
    const key = files.map((file) => file.key).join(' ');
    if (this.#job?.key !== key) {
      const model = await readJob(files, report);
      this.#job = { key, model, read: diagnosed(model) };
    }
    return this.#job;
  }

  #planned(state: StudioState, file: NamedText | undefined): Planned | undefined {
    const { machine, nodes, nccl, env, gpusOff, nicsOff, edits, others } = state;
    const key = JSON.stringify([file?.name ?? '', machine, nodes, nccl, env, gpusOff, nicsOff, edits, others]);
    const kept = this.#plans.get(key);
    this.#plans.delete(key);
    const latest = kept?.text === file?.text && kept !== undefined ? kept : { text: file?.text, made: planOf(state, file) };
    this.#plans.set(key, latest);
    for (const oldest of this.#plans.keys()) {
      if (this.#plans.size <= MOST_PLANS) break;
      this.#plans.delete(oldest);
    }
    return latest.made;
  }
}

function planOf(state: StudioState, file: NamedText | undefined): Planned | undefined {
  const source = sourceOf(state, file);
  return source === undefined ? undefined : planned(source);
}
