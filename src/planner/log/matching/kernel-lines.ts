import { type Moment, momentOf } from '../deaths/stream.js';
import type { LogPlace } from '../lines/line.js';

/** Host and time of a line of the kernel or of a service of the host. */
export interface KernelStamp {
  /** Named in syslog and the journal; dmesg does not name it. */
  readonly host: string | undefined;
  readonly moment: Moment | undefined;
  /** Seconds since boot, where it has no date. */
  readonly uptime: number | undefined;
}

/** Levels before the stamp: `<3>` of dmesg -r, `kern  :err   : ` of dmesg -x. */
const levelForm = /^(?:<\d{1,3}>|[a-z]{3,8} {0,5}:[a-z]{3,6} {0,4}: )(?=[[\d])/;
const uptimeForm = /^\[ {0,8}(\d{1,9})\.\d{6}\] (?:[\w.-]{1,255} kernel: )?/;
/** dmesg --time-format iso, which names no host. */
const isoForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:?\d\d /;
const dmesgForm = /^\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}\] /;
const syslogForm =
  /^(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,20}|(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? [A-Z]{1,5}|\d{10}\.\d{6}|\[ {0,8}\d{1,9}\.\d{6}\]|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,9})?) ([\w.-]{1,255}) (?:kernel|systemd[\w-]{0,40}|nv[\w-]{0,30}fabricmanager)(?:\[\d{1,9}\])?: /;

/** Undefined where the line is not of such a form. */
export function kernelStampOf(line: string): KernelStamp | undefined {
  const text = line.replace(levelForm, '');
  if (text.startsWith('[')) {
    const seconds = uptimeForm.exec(text)?.[1];
    if (seconds !== undefined) return { host: undefined, moment: undefined, uptime: Number(seconds) };
    const head = dmesgForm.exec(text)?.[0];
    return head === undefined ? undefined : { host: undefined, moment: momentOf(head), uptime: undefined };
  }
  if (isoForm.test(text)) return { host: undefined, moment: momentOf(text), uptime: undefined };
  const [head, host] = syslogForm.exec(text) ?? [];
  return head === undefined ? undefined : { host, moment: momentOf(head), uptime: undefined };
}

/** Lines of a file without a date, after which none is looked for. */
const TRIES = 1000;

/** By file, the time of the first dated line of a program, and the last stamp of the kernel. */
export class FileClocks {
  readonly #first = new Map<number, Moment>();
  readonly #last = new Map<number, KernelStamp>();
  readonly #tries = new Map<number, number>();

  read(text: string, { file }: LogPlace): void {
    const stamp = kernelStampOf(text);
    if (stamp !== undefined) {
      this.#last.set(file, stamp);
      return;
    }
    if (this.#first.has(file)) return;
    const tries = this.#tries.get(file) ?? 0;
    if (tries >= TRIES) return;
    this.#tries.set(file, tries + 1);
    const moment = momentOf(text);
    if (moment !== undefined) this.#first.set(file, moment);
  }

  /** First times of files, each hour once. */
  firstOf(files: Iterable<number>): Moment[] {
    const byHour = new Map<string, Moment>();
    for (const file of files) {
      const moment = this.#first.get(file);
      if (moment !== undefined) byHour.set(`${moment.year ?? ''} ${Math.floor(moment.ms / HOUR)}`, moment);
    }
    return [...byHour.values()];
  }

  lastOf(file: number): KernelStamp | undefined {
    return this.#last.get(file);
  }
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Milliseconds from one time to another; without a year, those of the nearest year. */
function between(from: Moment, to: Moment): number {
  if (from.year !== undefined && to.year !== undefined) return Date.UTC(to.year, 0) + to.ms - (Date.UTC(from.year, 0) + from.ms);
  const plain = to.ms - from.ms;
  return plain > 183 * DAY ? plain - 365 * DAY : plain < -183 * DAY ? plain + 365 * DAY : plain;
}

const ageText = (ms: number) => `${Math.floor(ms / DAY)} ${ms < 2 * DAY ? 'day' : 'days'}`;

/** The age of a line that was written more than a day before the job's first one. Clocks of containers differ by hours. */
export function beforeJob({ moment }: KernelStamp, starts: readonly Moment[]): string | undefined {
  if (moment === undefined || starts.length === 0) return undefined;
  const age = Math.min(...starts.map((start) => between(moment, start)));
  return age > DAY ? `${ageText(age)} before the job's first line` : undefined;
}

/** The age of a line more than a day before the last one of its file. */
export function beforeEnd({ moment, uptime }: KernelStamp, last: KernelStamp | undefined): string | undefined {
  const age =
    uptime !== undefined && last?.uptime !== undefined
      ? (last.uptime - uptime) * 1000
      : moment !== undefined && last?.moment !== undefined
        ? between(moment, last.moment)
        : 0;
  return age > DAY ? `${ageText(age)} before the end of that kernel's log` : undefined;
}

/** Names of containers and pods, which say nothing about the host. */
const contained =
  /^[0-9a-f]{12}$|(?:^|-)(?:worker|master|launcher|head|replica|pod|chief|ps)s?(?:-|$)|-[a-z0-9]{5,10}-[a-z0-9]{5}$|^localhost$/;
const shortName = (host: string) => host.split('.', 1)[0]?.toLowerCase() ?? '';

/** True for a host that is none of the job's, where names of hosts are known. */
export function isForeign({ host }: KernelStamp, processes: readonly { readonly host: string }[]): boolean {
  if (host === undefined || host === 'localhost') return false;
  const hosts = new Set(processes.map((process) => shortName(process.host)));
  return hosts.size > 0 && !hosts.has(shortName(host)) && ![...hosts].some((each) => each === '' || contained.test(each));
}
