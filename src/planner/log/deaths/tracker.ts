import { excerpt } from '../lines/excerpt.js';
import type { LogPlace } from '../lines/line.js';
import { ownText } from '../lines/own-text.js';
import type { LineRule } from '../rules/rule.js';
import { deathForms } from './forms.js';
import { signalNumber, signalOfCode } from './signals.js';
import { rankOfFile, type StreamLine, streamOf, timeOf } from './stream.js';

/** The reported end of a process, or of a helper of it. */
export interface Death {
  /** Ranks that a launcher's line or the line's own mark names; empty if unknown. */
  readonly ranks: readonly number[];
  readonly host: string | undefined;
  readonly how:
    | { readonly kind: 'exception'; readonly type: string; readonly message: string }
    | { readonly kind: 'signal'; readonly signal: number }
    | { readonly kind: 'exit'; readonly code: number };
  /** A helper process of the rank, such as `DataLoader worker`. */
  readonly helper: string | undefined;
  /** A launcher got the signal itself, from outside. */
  readonly isLauncher: boolean;
  /** A launcher says that this was the first failure. */
  readonly isFirst: boolean;
  /** The line speaks of a failure elsewhere: of NCCL, a connection, another process. */
  readonly isAftermath: boolean;
  /** The same stream goes on with lines of a program that works: the exception was caught. */
  readonly wentOn: boolean;
  /** Code of the rule that explains the line. */
  readonly rule: LineRule | undefined;
  /** The place of the program's own code in which it happened: `/app/data.py:41 in __getitem__`. */
  readonly frame: string | undefined;
  readonly text: string;
  readonly place: LogPlace;
  /** Milliseconds since the beginning of the year. */
  readonly timeMs: number | undefined;
}

/** A line of a rule whose failure programs catch. */
export interface CatchableLine {
  readonly rule: LineRule;
  /** The same stream goes on with lines of a program that works. */
  readonly wentOn: boolean;
}

interface OpenTraceback {
  readonly first: StreamLine;
  frame: string | undefined;
  hasOwnFrame: boolean;
  lines: number;
}

interface Summary {
  isFirst: boolean;
  timeMs: number | undefined;
  host: string | undefined;
  rank: number | undefined;
}

/** Lines of the program after exceptions, and those among them that tell of progress. */
interface Follow {
  readonly deaths: readonly { wentOn: boolean }[];
  plain: number;
  progress: number;
  left: number;
}

/** Lines after an exception that show that its process goes on. */
const PLAIN_LINES = 3;
/** Lines after an exception that are looked at. */
const FOLLOW_LINES = 400;
const progressForm = /\b(?:steps?|epochs?|iter(?:ation)?s?|batch(?:es)?|loss)\b.{0,20}\d|\b(?:finished|completed|done|saved)\b/i;
const troubleForm =
  /error|fail|exception|abort|kill|signal|terminat|exit|clos|shut|crash|died|dead|destroy|traceback|warn|interrupt|timeout|timed out/i;

/** The head of a warning of PyTorch, which is no part of a message. */
const warningForm = /\[W(?:\d{3,4} [^\]]{1,80}|[^\]\n]{0,60} ?\w{1,60}\.cpp:\d{1,5})\]/;

/** Lines after an exception's that may go on with its message. */
const TAIL_LINES = 12;

type GrowingDeath = { -readonly [Key in keyof Death]: Death[Key] };

const DEATH_LIMIT = 2000;
const OPEN_LIMIT = 1024;
/** The longest traceback, in lines of its process. */
const TRACEBACK_LIMIT = 400;
const TEXT_LENGTH = 500;

const exceptionForm = /^((?:[a-zA-Z_]\w{0,80}\.){0,8}[A-Z]\w{0,80})(?:: (.*)|:?\s*)$/;
const lonelyForm = /^((?:[a-zA-Z_]\w{0,80}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Expired|Interrupt)): (.{2,})$/;
/** Words of launchers, and of programs at the end of their work. */
const successForm = new RegExp(
  [
    String.raw`\bexits successfully\b|\bexit(?:ed|s)? with (?:exit |return )?code ?=? ?0\b|[Ee]xit ?[Cc]ode: {1,12}0\b`,
    String.raw`Trainer\.fit\W{1,3}stopped: \W?max_\w{1,20}=\S{1,40} reached|['"]train_runtime['"]: ?\d|^\s{0,4}train_runtime {1,40}= `,
    String.raw`Job '[\w-]{1,80}' succeeded|State: COMPLETED \(exit code 0\)|worker group successfully finished|\[after training is done\]`,
    String.raw`^\W{0,4}(?:[\w.]{1,40} ?[-:] )?(?:[Mm]odel )?[Tt]raining (?:is |has |was |has been )?(?:complete|completed|finished|done)(?: successfully)?(?:[.!]|,? (?:in|after) \d|$)`,
    String.raw`^\W{0,4}(?:[Ff]inished|[Cc]ompleted|[Dd]one) training(?:[.!]|,? in \d|$)|^\d{1,6} epochs completed in \d`,
  ].join('|'),
);
/** Exit codes of a shell. */
const COMMAND_REFUSED = 126;
const COMMAND_MISSING = 127;
/** A launcher of ranks whose command failed, or one that started such a launcher. */
const failedCommand =
  /CalledProcessError: Command [^\n]{0,3000}(?:--local[_-]rank|torchrun|torch\.distributed|deepspeed|mpirun|mpiexec|accelerate|srun|ssh)\b[^\n]{0,3000} returned non-zero exit status (\d{1,3})\b/;
const chained = /^(?:During handling of the above exception|The above exception was the direct cause)/;
const frameForm = /^\s+File "([^"]{1,300})", line (\d{1,7}), in (\S{1,120})/;
/** Frames of libraries say less than those of the program. */
const libraryFrame = /\/(?:site-packages|dist-packages|lib\/python[\d.]+)\/|^<frozen|^<string>/;

/** Exceptions and messages that follow from a failure elsewhere. */
const aftermathForm = new RegExp(
  [
    String.raw`\bNCCL (?:error|communicator|operation|timeout|WARN)|DistBackendError|\bnccl(?:Unhandled|System|Internal|Invalid|Remote)`,
    String.raw`[Cc]onnection (?:was )?(?:reset|closed|refused|aborted|lost)|Connection(?:Reset|Aborted|Refused)|Broken ?[Pp]ipe|EOFError|IncompleteReadError`,
    String.raw`ChildFailedError|ProcessExitedException|ProcessRaisedException|SignalException|CalledProcessError|SystemExit|GeneratorExit|CancelledError`,
    String.raw`ActorDiedError|RayActorError|ActorUnavailableError|WorkerCrashedError|EngineDeadError|EngineGenerateError|ShardCannotStart`,
    String.raw`[Ee]ngine (?:core|process)[^\n]{0,40}(?:failed|died)|(?:[Ww]orker|WorkerProc)\w{0,20} (?:initialization failed|died|has died)|died unexpectedly|See (?:root cause|stack trace)`,
    String.raw`DistNetworkError|DistStoreError|TCPStore|[Pp]rocess group watchdog|collective operation timeout|[Ss]ocket [Tt]imeout|RPC call to|timed? ?out waiting|[Tt]imed out after`,
    String.raw`Background loop has|background process|already dead|[Aa]bort(?:ed|ing)|one of the (?:ranks|workers)|Some (?:workers|ranks)|gloo\/transport|[Rr]endezvous`,
  ].join('|'),
);

/** Services outside the job, whose lost connections are no aftermath. */
const outsideForm =
  /^(?:requests|urllib3?|http|huggingface_hub|httpx|aiohttp|botocore|boto3|s3fs|gcsfs|fsspec|wandb|openai|datasets)\.|HTTPS?Connection|https?:\/\//;

/** Finds the ends of processes: exceptions with their tracebacks, and what launchers, shells and containers report. */
export class DeathTracker {
  readonly #deaths: GrowingDeath[] = [];
  readonly #successes: LogPlace[] = [];
  readonly #tracebacks = new Map<string, OpenTraceback>();
  /** By tag, exceptions and what came after the last one. */
  readonly #follows = new Map<string, Follow>();
  readonly #catchable: { readonly rule: LineRule; wentOn: boolean }[] = [];
  #summary: Summary | undefined;
  #what: { readonly tag: string; readonly type: string; readonly place: LogPlace } | undefined;
  /** The exception whose message may go on. */
  #tail: { readonly death: GrowingDeath; readonly tag: string; left: number } | undefined;
  /** The rank of the file's name, and that of a launcher's block of lines. */
  #fileRank: number | undefined;
  #blockRank: number | undefined;

  openFile(name: string): void {
    this.#tracebacks.clear();
    this.#follows.clear();
    this.#summary = undefined;
    this.#what = undefined;
    this.#tail = undefined;
    this.#blockRank = undefined;
    this.#fileRank = rankOfFile(name);
  }

  /** True while lines without a text of a form matter: within tracebacks and summaries. */
  get isOpen(): boolean {
    const isWithin = this.#summary !== undefined || this.#what !== undefined || this.#tail !== undefined;
    return isWithin || this.#tracebacks.size > 0 || this.#follows.size > 0;
  }

  /** @param forms numbers of the forms whose texts are in the line; @param rule the rule that the line matched */
  read(text: string, place: LogPlace, forms: readonly number[], rule: LineRule | undefined): void {
    if (this.#deaths.length >= DEATH_LIMIT) return;
    const line = streamOf(text);
    if (this.#summary !== undefined && this.#readSummary(line.rest, text, place)) return;
    if (warningForm.test(text)) this.#tail = undefined;
    this.#readTail(line, rule);
    this.#follow(line, rule);
    if (rule?.isCatchable === true) this.#addCaught(line, rule);
    if (this.#readTraceback(line, text, place, rule)) return;
    for (const index of forms) {
      if (index >= deathForms.length) this.#readMark(index - deathForms.length, line, text, place, rule);
      else if (this.#readForm(index, line, text, place, rule)) return;
    }
  }

  list(): Death[] {
    return this.#deaths;
  }

  /** Lines of rules whose failures programs catch. */
  get catchable(): readonly CatchableLine[] {
    return this.#catchable;
  }

  /** Lines in which a launcher or program says that it ended without an error. */
  get successes(): readonly LogPlace[] {
    return this.#successes;
  }

  #readForm(index: number, line: StreamLine, text: string, place: LogPlace, rule: LineRule | undefined): boolean {
    const form = deathForms[index];
    const groups = form?.pattern.exec(text)?.groups;
    if (form === undefined || groups === undefined) return false;
    const { code, signal, host } = groups;
    const number = signal === undefined ? undefined : signalNumber(signal);
    const ranks = ranksIn(groups['rank'] ?? groups['rank2']);
    const known = ranks.length > 0 ? ranks : this.#blockRank === undefined ? this.#ranksOf(line) : [this.#blockRank];
    this.#add({
      ranks: known,
      host: host === undefined ? undefined : ownText(host),
      how:
        number !== undefined
          ? { kind: 'signal', signal: number }
          : code === undefined
            ? { kind: 'exit', code: 1 }
            : howOf(Number(code)),
      helper: form.helper,
      isLauncher: form.isLauncher === true,
      isFirst: false,
      isAftermath: false,
      rule: rule?.kind === 'fault' ? rule : undefined,
      frame: undefined,
      text,
      place,
    });
    return true;
  }

  /** Lines that begin something: a traceback, a summary, a C++ exception; a lone exception; the rank of a block. */
  #readMark(mark: number, line: StreamLine, text: string, place: LogPlace, rule: LineRule | undefined): void {
    const { tag, rest } = line;
    if (mark === Mark.TRACEBACK) {
      if (rest.startsWith('Traceback') && this.#tracebacks.size < OPEN_LIMIT)
        this.#tracebacks.set(tag, { first: line, frame: undefined, hasOwnFrame: false, lines: 0 });
    } else if (mark === Mark.SUMMARY) {
      this.#summary = { isFirst: rest.includes('Root Cause'), timeMs: undefined, host: undefined, rank: undefined };
    } else if (mark === Mark.TERMINATE) {
      const [, type] = /terminate called after throwing an instance of '([^']{1,120})'/.exec(rest) ?? [];
      if (type !== undefined) this.#what = { tag, type: ownText(type), place };
    } else if (mark === Mark.WHAT) {
      const [, message] = /^\s{0,6}what\(\): {1,3}(.+)$/.exec(rest) ?? [];
      if (message !== undefined && this.#what?.tag === tag) {
        this.#addException(line, this.#what.type, message, undefined, `${this.#what.type}: ${message}`, this.#what.place, rule);
        this.#what = undefined;
      }
    } else if (mark === Mark.SUCCESS) {
      if (successForm.test(rest) && this.#successes.length < DEATH_LIMIT) this.#successes.push(place);
    } else if (mark === Mark.RANK) {
      const [, hydra, openMpi] = /^=? {1,4}RANK (\d{1,7}) PID \d|Process name: \[[^\n]{1,60},(\d{1,7})\]/.exec(rest) ?? [];
      if (hydra !== undefined || openMpi !== undefined) this.#blockRank = Number(hydra ?? openMpi);
    } else {
      const [, type = '', message = ''] = lonelyForm.exec(rest) ?? [];
      if (type !== '') this.#addException(line, type, message, undefined, text, place, rule);
    }
  }

  #follow({ tag, rest }: StreamLine, rule: LineRule | undefined): void {
    const follow = this.#follows.get(tag);
    if (follow === undefined) return;
    if (--follow.left === 0) this.#follows.delete(tag);
    if (rule !== undefined || !/^\w/.test(rest) || troubleForm.test(rest)) return;
    follow.plain++;
    if (progressForm.test(rest)) follow.progress++;
    if (follow.plain < PLAIN_LINES || follow.progress === 0) return;
    for (const death of follow.deaths) death.wentOn = true;
    this.#follows.delete(tag);
  }

  /** Later lines of a message name the cause, or show that it is about another process. */
  #readTail({ tag, rest }: StreamLine, rule: LineRule | undefined): void {
    const tail = this.#tail;
    if (tail?.tag !== tag) return;
    const { death } = tail;
    if (rule !== undefined && isCause(rule)) {
      death.rule = rule;
      death.isAftermath = false;
    } else if (rule !== undefined || isOfOthers(rest)) death.isAftermath = death.rule === undefined;
    if (rest === '' || --tail.left === 0) this.#tail = undefined;
  }

  #readTraceback(line: StreamLine, text: string, place: LogPlace, rule: LineRule | undefined): boolean {
    const open = this.#tracebacks.get(line.tag);
    if (open === undefined) return false;
    const { rest } = line;
    const [, file = '', number = '', name = ''] = frameForm.exec(rest) ?? [];
    if (file !== '') {
      const isOwn = !libraryFrame.test(file);
      // The innermost frame of the program, else that of a library.
      if (isOwn || !open.hasOwnFrame) open.frame = ownText(`${file}:${number} in ${name}`);
      open.hasOwnFrame ||= isOwn;
    }
    if (++open.lines > TRACEBACK_LIMIT) this.#tracebacks.delete(line.tag);
    if (rest === '' || /^\s/.test(rest) || rest.startsWith('Traceback') || chained.test(rest)) return file !== '';
    const [, type, message = ''] = exceptionForm.exec(rest) ?? [];
    // Lines of other processes without marks stand between those of a traceback.
    if (type === undefined) return false;
    this.#tracebacks.delete(line.tag);
    this.#addException(line, type, message, open.frame, text, place, rule);
    return true;
  }

  #addException(
    line: StreamLine,
    type: string,
    message: string,
    frame: string | undefined,
    text: string,
    place: LogPlace,
    rule: LineRule | undefined,
  ): void {
    const helper = deathForms.findIndex((form) => form.helper !== undefined && form.pattern.test(message));
    if (helper >= 0 && this.#readForm(helper, line, text, place, rule)) return;
    const isExplained = rule !== undefined && isCause(rule);
    const ranks = this.#ranksOf(line);
    const how = howOf(Number((ranks.length > 0 ? null : failedCommand.exec(`${type}: ${message}`))?.[1] ?? 0));
    if (how.kind === 'signal' || how.code === COMMAND_REFUSED || how.code === COMMAND_MISSING) {
      this.#add({
        ranks,
        host: undefined,
        how,
        helper: undefined,
        isLauncher: false,
        isFirst: false,
        isAftermath: false,
        rule: undefined,
        frame: undefined,
        text,
        place,
      });
      return;
    }
    // A launcher's failed command is its job; a rank's is a tool that the rank called.
    const isOfTool = ranks.length > 0 && type.endsWith('CalledProcessError');
    const death = this.#add({
      ranks,
      host: undefined,
      how: { kind: 'exception', type: ownText(type), message: excerpt(message, TEXT_LENGTH) },
      helper: undefined,
      isLauncher: false,
      isFirst: false,
      isAftermath: !isExplained && (rule !== undefined || (!isOfTool && isOfOthers(`${type}: ${message}`))),
      rule: isExplained ? rule : undefined,
      frame,
      text,
      place,
    });
    this.#tail = { death, tag: line.tag, left: TAIL_LINES };
    this.#openFollow(line.tag, death);
  }

  #openFollow(tag: string, ...added: readonly { wentOn: boolean }[]): void {
    const deaths = [...(this.#follows.get(tag)?.deaths ?? []), ...added];
    if (this.#follows.size < OPEN_LIMIT) this.#follows.set(tag, { deaths, plain: 0, progress: 0, left: FOLLOW_LINES });
  }

  /** A line of a failure that programs catch. */
  #addCaught({ tag }: StreamLine, rule: LineRule): void {
    if (this.#catchable.length >= DEATH_LIMIT) return;
    const line = { rule, wentOn: false };
    this.#catchable.push(line);
    this.#openFollow(tag, line);
  }

  /** torchrun's summary: `rank : 3 (local_rank: 3)`, `exitcode : -9 (pid: 4711)`. */
  #readSummary(rest: string, text: string, place: LogPlace): boolean {
    const summary = this.#summary;
    if (summary === undefined) return false;
    const [, name, value = ''] = /^\s{0,4}(time|host|rank|exitcode|error_file|traceback) {1,12}: (.{0,300})$/.exec(rest) ?? [];
    if (name === undefined) {
      if (rest.startsWith('Root Cause')) summary.isFirst = true;
      else if (/^={5,}/.test(rest)) this.#summary = undefined;
      return false;
    }
    if (name === 'time') summary.timeMs = timeOf(value);
    else if (name === 'host') summary.host = ownText(value.trim());
    else if (name === 'rank') summary.rank = Number(/^\d{1,7}/.exec(value)?.[0] ?? NaN);
    else if (name === 'exitcode') {
      const code = Number(/^-?\d{1,3}/.exec(value)?.[0] ?? NaN);
      if (Number.isInteger(code) && code !== 0)
        this.#add(
          {
            ranks: summary.rank === undefined || Number.isNaN(summary.rank) ? [] : [summary.rank],
            host: summary.host,
            how: howOf(code),
            helper: undefined,
            isLauncher: false,
            isFirst: summary.isFirst,
            isAftermath: false,
            rule: undefined,
            frame: undefined,
            text,
            place,
          },
          summary.timeMs,
        );
    }
    return true;
  }

  #ranksOf({ rank }: StreamLine): readonly number[] {
    const known = rank ?? this.#fileRank;
    return known === undefined ? [] : [known];
  }

  #add(death: Omit<Death, 'timeMs' | 'wentOn'>, timeMs = timeOf(death.text)): GrowingDeath {
    const added = { ...death, wentOn: false, text: excerpt(death.text, TEXT_LENGTH), timeMs };
    this.#deaths.push(added);
    return added;
  }
}

/** Beginnings that the tracker looks for besides the forms. */
const Mark = { TRACEBACK: 0, SUMMARY: 1, TERMINATE: 2, WHAT: 3, RANK: 4, SUCCESS: 5, LONELY: 6 } as const;

/** Texts of the forms and then of the marks, by the number that {@link DeathTracker.read} takes. */
export const deathNeedles: readonly (readonly string[])[] = [
  ...deathForms.map(({ needles }) => needles),
  ['traceback (most recent call last)'],
  ['root cause (first observed failure)', 'failures:'],
  ['terminate called after throwing'],
  ['what():'],
  ['process name: [', ' running at '],
  [
    'exits successfully',
    'with code 0',
    'code = 0',
    'code: 0',
    'exit code 0)',
    'trainer.fit',
    'train_runtime',
    "' succeeded",
    'worker group successfully finished',
    'after training is done',
    'training complete',
    'training is complete',
    'training has complete',
    'training has been complete',
    'training finished',
    'training done',
    'finished training',
    'done training',
    'completed training',
    'epochs completed in',
  ],
  ['error: ', 'exception: ', 'expired: ', 'interrupt: '],
];

function isCause({ kind }: LineRule): boolean {
  return kind === 'fault' || kind === 'failure';
}

function isOfOthers(text: string): boolean {
  return aftermathForm.test(text) && !outsideForm.test(text);
}

function howOf(code: number): Exclude<Death['how'], { readonly kind: 'exception' }> {
  const signal = signalOfCode(code);
  return signal === undefined ? { kind: 'exit', code } : { kind: 'signal', signal };
}

/** `0-2,5` */
function ranksIn(text: string | undefined): number[] {
  return (text ?? '').split(',').flatMap((part) => {
    const [, from, to = from] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(part) ?? [];
    if (from === undefined) return [];
    const count = Math.min(4096, Math.max(0, Number(to) - Number(from) + 1));
    return Array.from({ length: count }, (_, index) => Number(from) + index);
  });
}
