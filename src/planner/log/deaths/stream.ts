/** A line without what launchers and collectors put before it. */
export interface StreamLine {
  /** Marks of the process that wrote it (rank, pid, pod), without times and levels; lines of one process have the same. */
  readonly tag: string;
  /** Undefined where no mark names it. */
  readonly rank: number | undefined;
  readonly rest: string;
}

const PIECES = 8;
/** Times, levels and names of loggers, which differ between lines of one process. */
const passing =
  /^(?:\s{0,2}\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?: \w{3})?\]?:? ?|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]:? ?|(?:stdout|stderr) [FP] |\[?(?:ERROR|INFO|WARNING|CRITICAL|FATAL|error|E|W)\]?:? {1,3}(?=\S)|\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? |\[[\w.\/-]{1,80}\.(?:py|cc|cpp|rs):\d{1,5}(?::\w{1,60})?\]:? ?|[\w.]{2,80}:\d{1,5}:? (?=\S)|\[[EWIF]\d{3,4} \d\d:\d\d:\d\d\.\d{1,9} [\w.]{1,60}:\d{1,5}\] ?|\| )/;
/** Marks of a process; `$1` to `$4` are its rank. */
const marks =
  /^\s{0,2}(?:\[(?:rank|Rank |default|RANK )(\d{1,7})\]:? ?|\[\d{1,9},(\d{1,7})\](?:<std(?:err|out)>:? ?)?|(\d{1,7}): {1,2}|\[(\d{1,7})\](?:<std(?:err|out)>)?:? |(?:\x1b\[\d{1,3}m)?\([\w.<>: -]{1,80}pid=\d{1,9}(?:, ip=[\w.:]{3,60})?\)(?:\x1b\[\d{1,3}m)? ?|\(\w{1,40} TP\d{1,4}[^)]{0,40}\) ?|\[pod\/[^\]]{1,160}\] ?|<std(?:err|out)>: ?|\[[\w.-]{1,80}\]:? (?=Traceback|\w{0,60}(?:Error|Exception)|  File))/;

/** Separates the beginning of a line from what the program wrote. */
export function streamOf(text: string): StreamLine {
  let rest = text;
  let tag = '';
  let rank: number | undefined;
  for (let count = 0; count < PIECES; count++) {
    const mark = marks.exec(rest);
    const piece = mark ?? passing.exec(rest);
    if (piece === null || piece[0] === '') break;
    rest = rest.slice(piece[0].length);
    if (mark === null) continue;
    tag += mark[0].trim();
    const named = mark[1] ?? mark[2] ?? mark[3] ?? mark[4];
    if (named !== undefined) rank ??= Number(named);
  }
  return { tag, rank, rest };
}

/** Names of files that belong to one rank: `rank_3.log`, `stderr.3`, `attempt_0/3/stderr.log`. */
export function rankOfFile(name: string): number | undefined {
  const [, rank] =
    /(?:rank[_.-]?(\d{1,6})\b[^/]{0,40}|(?:^|\/)(?:stderr|stdout)[._-](\d{1,6})(?:\.\w{1,4})?|attempt_\d{1,3}\/(\d{1,6})\/std(?:err|out)\.log)$/i
      .exec(name)
      ?.filter((group: string | undefined) => group !== undefined) ?? [];
  return rank === undefined ? undefined : Number(rank);
}

const days = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const HEAD = 160;
const dated =
  /\b(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)[T _](?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)(?:[.,](?<fraction>\d{1,9}))?/;
const glog = /\[?[EWIF](?<month>\d{1,2})(?<day>\d\d) (?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)(?:\.(?<fraction>\d{1,9}))?/;
const short = /(?:^|\s)(?<month>\d\d)-(?<day>\d\d) (?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)(?:\.(?<fraction>\d{1,9}))?/;
const named =
  /\b(?<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?<day>\d{1,2}) (?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)(?:\.(?<fraction>\d{1,9}))?(?: (?<year>\d{4})\b)?/;

/** A time without its zone. */
export interface Moment {
  /** Undefined where the line has none. */
  readonly year: number | undefined;
  /** Milliseconds since the beginning of the year. */
  readonly ms: number;
}

/** Time of a line in milliseconds since the beginning of its year; undefined where it has none. */
export function timeOf(text: string): number | undefined {
  return momentOf(text)?.ms;
}

/** Time of a line; undefined where it has none. */
export function momentOf(text: string): Moment | undefined {
  const head = text.slice(0, HEAD);
  const match = dated.exec(head) ?? glog.exec(head) ?? short.exec(head) ?? named.exec(head);
  if (match === null) return undefined;
  const { month = '', day, hour, minute, second, fraction = '0', year } = match.groups ?? {};
  const number = months.includes(month) ? months.indexOf(month) : Number(month) - 1;
  const seconds = ((((days[number] ?? 0) + Number(day)) * 24 + Number(hour)) * 60 + Number(minute)) * 60 + Number(second);
  return {
    year: year === undefined ? undefined : Number(year),
    ms: seconds * 1000 + Number(fraction.padEnd(3, '0').slice(0, 3)),
  };
}
