import { describeError, InputError } from '../errors.js';
import type { LogModel } from '../planner/log/model.js';
import { partOf } from './parts.js';
import { readJob, shownLog, textOf } from './log.js';
import type { OpenFile, Reply, Request, Shown, ShownLog } from './messages.js';
import { answerTo, type Planned, planned, shownPlan } from './show.js';
import { type NamedText, sourceOf } from './source.js';

/** The global of a worker, as far as it is used. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<Request>) => void) | null;
  postMessage: (reply: Reply) => void;
}

/** Answers requests in a worker, one after the other; a newer request ends the worker. */
export function serve(scope: WorkerScope): void {
  const desk = new Desk();
  scope.onmessage = ({ data }) => {
    const report = (text: string) => scope.postMessage({ id: data.id, kind: 'progress', text });
    desk.show(data, report).then(
      (shown) => scope.postMessage({ id: data.id, kind: 'shown', shown }),
      (error: unknown) => scope.postMessage({ id: data.id, kind: 'error', message: describeError(error) }),
    );
  };
}

/** Makes views; keeps the latest files and plan, which most requests share. */
class Desk {
  #text: { readonly key: number; readonly text: string } | undefined;
  #job: { readonly key: string; readonly model: LogModel } | undefined;
  #plan: { readonly key: string; readonly made: Planned | undefined } | undefined;

  async show({ state, files }: Request, report: (text: string) => void): Promise<Shown> {
    const start = performance.now();
    const file = state.file === undefined ? undefined : files.find(({ name }) => name === state.file);
    if (state.file !== undefined && file === undefined)
      throw new InputError('FILE', `this view needs the file ${state.file}: open it, a link does not have its contents`);
    const named = file === undefined ? undefined : { name: file.name, text: await this.#textOf(file) };
    const second = files.find(({ name }) => name === state.against);
    const other = second === undefined ? undefined : { name: second.name, text: await textOf(second) };
    const log = file === undefined ? undefined : shownLog(await this.#jobOf(files, report));
    const needsTables = state.view === 'choice' && files.length > 0;
    const tables = needsTables ? (await this.#jobOf(files, report)).tables : [];
    const made = this.#plannedBeside(log, state, file, named);
    if (made === undefined && log === undefined)
      throw new InputError(
        'CONTENT',
        'is none of: topology (XML, as NCCL_TOPO_DUMP_FILE writes it), cluster file (YAML with machines:), log of NCCL (NCCL_DEBUG=INFO), output of nccl-tests, another file that tccl diagnose reads',
        { file: state.file ?? '' },
      );
    return {
      plan: made === undefined ? undefined : shownPlan(made, state, named, other),
      log,
      part: made === undefined ? undefined : partOf(made, state, tables),
      answer: made === undefined || state.ask.trim() === '' ? undefined : answerTo(made.source, state.ask),
      tookMs: performance.now() - start,
    };
  }

  /** A file that says something about a job is shown, also if what it says of a machine cannot be planned. */
  #plannedBeside(
    log: ShownLog | undefined,
    state: Request['state'],
    file: OpenFile | undefined,
    named: NamedText | undefined,
  ): Planned | undefined {
    try {
      return this.#planned(state, file, named);
    } catch (error) {
      if (log === undefined || !(error instanceof InputError)) throw error;
      return undefined;
    }
  }

  async #textOf(file: OpenFile): Promise<string> {
    if (this.#text?.key !== file.key) this.#text = { key: file.key, text: await textOf(file) };
    return this.#text.text;
  }

  async #jobOf(files: readonly OpenFile[], report: (text: string) => void): Promise<LogModel> {
    const key = files.map((file) => file.key).join(' ');
    if (this.#job?.key !== key) this.#job = { key, model: await readJob(files, report) };
    return this.#job.model;
  }

  #planned(state: Request['state'], file: OpenFile | undefined, named: NamedText | undefined): Planned | undefined {
    const { machine, nodes, nccl, env, gpusOff, nicsOff } = state;
    const key = JSON.stringify([file?.key ?? machine, nodes, nccl, env, gpusOff, nicsOff]);
    if (this.#plan?.key === key) return this.#plan.made;
    const source = sourceOf(state, named);
    const made = source === undefined ? undefined : planned(source);
    this.#plan = { key, made };
    return made;
  }
}
