import { CallTracker } from './calls.js';
import { CommunicatorTracker } from './communicator-tracker.js';
import type { LogEvent } from '../lines/events.js';
import { streamOf } from '../deaths/stream.js';
import { DeathTracker } from '../deaths/tracker.js';
import type { FileKind } from '../../readers/classify.js';
import { ToolSections } from '../../readers/sections.js';
import { candidatesOf } from '../matching/line-index.js';
import { RankTracker } from './known-ranks.js';
import { beforeEnd, beforeJob, FileClocks, isForeign } from '../matching/kernel-lines.js';
import { type LogLine, type LogPlace, readLine, withMarker, withoutColours } from '../lines/line.js';
import { readMessage, readVersion } from '../lines/message.js';
import type { LogModel } from './model.js';
import { hasEnded } from './outcome.js';
import { ownText } from '../lines/own-text.js';
import { ProcessTracker } from './processes.js';
import type { DetailBudget } from './rank-record.js';
import { RuleMatcher } from '../matching/rule-matcher.js';
import { SystemBlocks } from './system-block.js';
import { TableReader } from './table.js';
import { unwrapped } from '../lines/unwrap.js';
import { processName, WarningTracker } from './warnings.js';
import { WatchdogTracker } from './watchdog.js';
import { WholeFileReader } from './whole-files.js';

/** Details of all ranks together: numbers of rings and trees, connections. About 16,384 ranks on 32 channels fit. */
const DETAIL_LIMIT = 64_000_000;

/**
 * Reads a log line by line, of one rank or of many mixed. Memory grows with ranks and channels, not with the length of the log,
 * up to fixed limits; dropped details are counted.
 *
 *     const reader = new NcclLogReader();
 *     reader.openFile('job.log');
 *     for (const line of text.split('\n')) reader.readLine(line);
 *     const findings = checkLog(reader.finish());
 */
export class NcclLogReader {
  readonly #files: string[] = [];
  readonly #processes = new ProcessTracker();
  readonly #room: DetailBudget = { left: DETAIL_LIMIT, refused: 0 };
  readonly #communicators = new CommunicatorTracker(this.#room);
  readonly #calls = new CallTracker();
  readonly #tables = new TableReader();
  readonly #rules = new RuleMatcher();
  readonly #clocks = new FileClocks();
  readonly #warnings = new WarningTracker();
  readonly #systems = new SystemBlocks();
  readonly #watchdog = new WatchdogTracker();
  readonly #deaths = new DeathTracker();
  readonly #ranks = new RankTracker();
  readonly #tools = new ToolSections();
  readonly #whole = new WholeFileReader();
  readonly #cut = new Map<string, { count: number; readonly first: LogPlace }>();
  #line = 0;
  #allLines = 0;
  #ncclLines = 0;
  #version: { readonly text: string; readonly place: LogPlace } | undefined;
  #unfinished: LogPlace | undefined;
  /** The last lines of NCCL, in no order. */
  readonly #recent: string[] = [];
  /** The pod that `kubectl describe` or a manifest began with. */
  #pod = '';
  /** The last line said that NCCL's last warning follows. */
  #isQuoted = false;

  /** Lines from now on are of this file. */
  openFile(name: string): void {
    this.#files.push(name);
    this.#deaths.openFile(name);
    this.#ranks.openFile(name);
    this.#tables.openFile();
    this.#tools.openFile();
    this.#line = 0;
    this.#pod = '';
  }

  /**
   * A file that is no text, or that makes sense only as a whole.
   *
   * @returns its kind in words
   * @throws InputError where it is none that can be read
   */
  readWhole(kind: Exclude<FileKind, 'text' | 'binary'>, bytes: Uint8Array): string {
    const file = Math.max(0, this.#files.length - 1);
    return this.#whole.read(kind, bytes, this.#files[file] ?? '', { file, line: 1 });
  }

  /** One line, without its end. */
  readLine(text: string): void {
    this.#line++;
    this.#allLines++;
    const place: LogPlace = { file: Math.max(0, this.#files.length - 1), line: this.#line };
    const pieces = unwrapped(text);
    if (pieces === undefined) this.#read(withMarker(withoutColours(text)), place);
    else for (const piece of pieces) this.#read(withMarker(withoutColours(piece)), place);
  }

  /** Counts empty lines that follow other empty ones. */
  skipLines(count: number): void {
    this.#line += count;
    this.#allLines += count;
  }

  /** Reads a last line without a line end, which is incomplete if the reader or an earlier line says so. */
  readUnfinishedLine(text: string): void {
    const cutBefore = this.#countOfCuts();
    const ncclBefore = this.#ncclLines;
    const earlier = [...this.#recent];
    this.readLine(text);
    // A last line that is whole lacks only its end: pasted text has none.
    const isCut =
      this.#countOfCuts() > cutBefore ||
      (this.#ncclLines === ncclBefore && this.#processes.isHeadOf(text)) ||
      isBeginning(text, earlier);
    if (isCut) {
      this.#unfinished = { file: Math.max(0, this.#files.length - 1), line: this.#line };
    }
  }

  finish(): LogModel {
    const communicators = this.#communicators.finish();
    const { ras, ...whole } = this.#whole.finish();
    const tools = [...this.#tools.finish(), ...whole.tools];
    return this.#withHits({
      ...whole,
      ras: [...ras, ...tools.flatMap((output) => (output.tool === 'ras' ? [output.facts] : []))],
      files: this.#files,
      lines: { all: this.#allLines, nccl: this.#ncclLines },
      communicators,
      processes: this.#processes.all,
      warnings: this.#warnings.list(),
      machines: this.#systems.list(),
      timeouts: this.#watchdog.list(),
      progress: this.#watchdog.progress,
      deaths: this.#deaths.list(),
      knownRanks: this.#ranks.finish(),
      tools,
      calls: this.#calls.list(),
      tables: this.#tables.tables,
      runs: this.#tables.runs,
      catchable: this.#deaths.catchable,
      successes: this.#deaths.successes,
      cutLines: this.#cut,
      unfinishedLine: this.#unfinished,
      left: {
        communicators: this.#communicators.refusedCommunicators,
        details: this.#room.refused,
        processes: this.#processes.refused,
      },
    });
  }

  /** Lines of the kernel from long before the job, or of a host that is none of its, do not say why it failed. */
  #withHits(facts: Omit<LogModel, 'hits' | 'apart'>): LogModel {
    const { processes, deaths, timeouts, runs, successes } = facts;
    const ofJob = [...processes.map(({ first }) => first), ...[...deaths, ...timeouts].map(({ place }) => place)];
    const places = [...ofJob, ...runs.map(({ started }) => started), ...successes];
    const starts = this.#clocks.firstOf(new Set(places.map(({ file }) => file)));
    const list = (isOldOut: boolean) =>
      this.#rules.list((stamp, file, { untilBoot }) => {
        if (isForeign(stamp, processes)) return `on ${stamp.host ?? ''}, which is none of the job's hosts`;
        if (untilBoot === true) return undefined;
        if (stamp.moment !== undefined && starts.length > 0) return beforeJob(stamp, starts);
        return isOldOut ? beforeEnd(stamp, this.#clocks.lastOf(file)) : undefined;
      });
    const model: LogModel = { ...facts, ...list(true) };
    const isExplained =
      model.hits.some(({ rule }) => rule.isSilent !== true && (rule.kind === 'fault' || rule.kind === 'failure')) ||
      deaths.some(({ how, isAftermath }) => how.kind === 'exception' && !isAftermath);
    // Without a date of the job, an old line may still be the only one that tells why it failed.
    return isExplained || hasEnded(model) ? model : { ...facts, ...list(false) };
  }

  #read(text: string, place: LogPlace): void {
    const { lines, before, broken, other } = readLine(text, this.#processes);
    if (lines.length > 0) {
      this.#ncclLines++;
      if (before !== '') {
        this.#tables.read(before, place);
        this.#clocks.read(before, place);
      }
      this.#recent[(this.#ncclLines - 1) % RECENT_LINES] = text;
      for (const line of lines) this.#readNccl(line, lines.length === 1 ? text : line.message, place);
      return;
    }
    if (other || broken) this.#ncclLines++;
    if (broken) this.#countCut('', place);
    if (other) return;
    this.#clocks.read(text, place);
    if (text.length < 300 && text.includes('ame: ')) this.#pod = podForm.exec(text)?.[1] ?? this.#pod;
    // PyTorch repeats the text of NCCL's last warning, without its head, on a line of its own.
    const isWarning = this.#isQuoted && text.trim() !== '';
    if (isWarning || text.trim() !== '') this.#isQuoted = text.trimEnd().endsWith('Last error:');
    const spoken = isWarning ? `NCCL WARN ${streamOf(text).rest}` : text;
    const { rules, deaths, tools } = candidatesOf(spoken);
    if (tools.length > 0 || this.#tools.isOpen) this.#tools.read(text, place, tools);
    const rule =
      rules.length === 0 ? undefined : this.#rules.read(spoken, rules, place, () => rankIn(text) || podIn(text) || this.#pod);
    if (isWarning && rule === undefined) this.#addQuoted(spoken, place);
    if (deaths.length > 0 || rule?.isCatchable === true || this.#deaths.isOpen) this.#deaths.read(text, place, deaths, rule);
    if (!broken) this.#readOther(text, place);
  }

  #addQuoted(spoken: string, place: LogPlace): void {
    const message = spoken.replace(/^NCCL WARN /, '').trim();
    const line: LogLine = { host: '', pid: 0, tid: 0, cudaDev: -1, level: 'WARN', source: undefined, message, torn: false };
    this.#warnings.add(line, undefined, '', place);
  }

  #readOther(text: string, place: LogPlace): void {
    this.#tables.read(text, place);
    this.#watchdog.read(text, place);
    this.#ranks.read(text, place);
    // `NCCL version` stands alone where NCCL_DEBUG=VERSION wrote it, or a launcher split the line.
    const at = text.indexOf('NCCL version ');
    const version = at < 0 ? undefined : readVersion(text.slice(at));
    if (version !== undefined) this.#version ??= { text: ownText(version), place };
    if (this.#processes.isHeadOf(text)) this.#countCut(this.#hostAtHead(text), place);
  }

  #hostAtHead(text: string): string {
    const host = text.slice(0, text.indexOf(':'));
    return host.slice(host.lastIndexOf(' ') + 1);
  }

  #readNccl(line: LogLine, text: string, place: LogPlace): void {
    const process = this.#processes.find(line.host, line.pid, place);
    if (process === undefined) return;
    if (this.#version !== undefined) {
      this.#processes.read(process, { kind: 'version', version: this.#version.text }, this.#version.place);
      this.#version = undefined;
    }
    const thread = `${line.host}:${line.pid}:${line.tid}`;
    if (line.level === 'WARN') {
      const record = this.#communicators.read(line, process, { kind: 'other' }, place);
      const rank = record?.rank ?? -1;
      const { rules } = candidatesOf(text);
      const rule = this.#rules.read(text, rules, place, () => (rank < 0 ? rankIn(text) || processName(line) : `rank ${rank}`));
      this.#warnings.pass(line, thread);
      // A text of one word is the rest of a line that was cut.
      if (rule === undefined && !line.message.trim().includes(' ')) this.#countCut(line.host, place);
      else if (rule === undefined) this.#warnings.add(line, rank, thread, place);
      return;
    }
    this.#systems.read(line.message, process.host, thread, line.torn, place);
    const event = readMessage(line.message);
    if (line.torn || event.kind === 'cut') this.#countCut(line.host, place);
    if (event.kind === 'returned') this.#warnings.addReturn(line, event, thread, place);
    this.#warnings.pass(line, thread);
    // Lines that the reader parses need no rule, except those of settings and processes.
    if (event.kind === 'other' || event.kind === 'cut' || event.kind === 'no-p2p' || event.kind === 'bootstrap')
      this.#rules.read(text, candidatesOf(text).rules, place, () => this.#whoWrote(line, event, place, text));
    if (event.kind === 'call') {
      if (!line.torn)
        this.#calls.read(line, event, this.#communicators.nameOf(line, event.address), this.#tables.runs.length, place);
      return;
    }
    if ((!line.torn || event.kind === 'ended') && this.#processes.read(process, event, place)) return;
    this.#communicators.read(line, process, event, place);
  }

  #whoWrote(line: LogLine, event: LogEvent, place: LogPlace, text: string): string {
    const process = this.#processes.find(line.host, line.pid, place);
    const rank = process === undefined ? -1 : (this.#communicators.read(line, process, event, place)?.rank ?? -1);
    return rank < 0 ? rankIn(text) || processName(line) : `rank ${rank}`;
  }

  #countOfCuts(): number {
    return [...this.#cut.values()].reduce((sum, { count }) => sum + count, 0);
  }

  #countCut(host: string, place: LogPlace): void {
    const known = this.#cut.get(host);
    if (known === undefined) this.#cut.set(host, { count: 1, first: place });
    else known.count++;
  }
}

const RECENT_LINES = 64;

/** True if another line goes on where this one of NCCL ends, apart from numbers. */
function isBeginning(text: string, others: readonly string[]): boolean {
  const form = (line: string) => line.slice(line.indexOf('NCCL ')).replaceAll(/0x[0-9a-f]+|\d+/g, '0');
  if (!text.includes('NCCL ')) return false;
  const own = form(text.trimEnd());
  return others.some((other) => form(other).length > own.length && form(other).startsWith(own));
}

/** `Name:  train-worker-3` of `kubectl describe pod`, and a manifest's `metadata`. */
const podForm = /^(?:Name: {2,20}|(?: {2}| {4})name: )([a-z0-9][a-z0-9.-]{1,250})\s*$/;

/** The pod in the prefix of `kubectl logs --prefix`. */
function podIn(text: string): string {
  return /^\[pod\/([\w.-]{1,253})\//.exec(text)?.[1] ?? '';
}

/** The rank that a launcher or framework names at the beginning of a line: `[rank3]:`, `[Rank 3]`, `[default3]`. */
function rankIn(text: string): string {
  const [, rank] = /\b(?:rank|default) ?(\d{1,7})\b[\])]/i.exec(text.slice(0, 300)) ?? [];
  return rank === undefined ? '' : `rank ${rank}`;
}
