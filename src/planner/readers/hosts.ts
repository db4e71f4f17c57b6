import { plainText, type ToolLine } from './section.js';

/** Consecutive lines of one host. */
export interface HostPart {
  /** Undefined where nothing names it. */
  readonly host: string | undefined;
  readonly lines: readonly ToolLine[];
}

const USER = '[A-Za-z_][\\w.-]*';
const HOST = '[A-Za-z0-9][\\w.-]*';
/** Prompts and headings that name the host of the lines after them; a prompt may be followed by its command. */
const headings: readonly RegExp[] = [
  new RegExp(`^\\s*(?:\\([\\w.-]+\\)\\s*)?\\[?${USER}@(?<host>${HOST})(?::| )[^#$%]{0,80}[#$%](?:\\s|$)`),
  /^\s*# tccl: host (?<host>\S{1,255}), command /,
  /^\s*(?<host>[\w.-]+) \| (?:SUCCESS|CHANGED|FAILED)\b.*>>\s*$/,
  /^\s*==> (?:.*\/)?(?<host>[\w-][\w.-]*?)(?:\.(?:txt|log|out|xml))? <==\s*$/,
  /^\s*(?:#{1,6} +|\*\*|=+ *|-+ *)?(?:host|node|server|machine)(?:name)?(?:\s*[:=]\s*|\s+)`?(?<host>[\w.-]*\d[\w.-]*)`?(?:\*\*|:)*\s*[=-]*$/i,
  /^\s*(?:#{1,6} +|\*\*)`?(?<host>[A-Za-z][\w.-]*\d)`?(?:\*\*|:)*\s*$/,
];
/** A prompt without a host. */
const barePrompt =
  /^\s*(?:\$|#|%|>)\s+(?:sudo\s+)?(?:nvidia-smi|lstopo|lspci|ibstat|ibdev2netdev|hwloc|scontrol|sinfo|kubectl|lscpu|cat|dmidecode|ssh|srun)\b/;

/** Cuts lines at prompts, headings and prefixes that name hosts. */
export function hostParts(lines: readonly ToolLine[]): readonly HostPart[] {
  const prefixed = prefixedLines(lines);
  if (prefixed !== undefined) return [...prefixed].map(([host, own]) => ({ host, lines: own }));
  const parts: { host: string | undefined; lines: ToolLine[] }[] = [{ host: undefined, lines: [] }];
  let isHostname = false;
  for (const line of lines) {
    const text = plainText(line.text);
    const last = parts.at(-1);
    const host = isHostname ? /^\s*([\w.-]+)\s*$/.exec(text)?.[1] : hostOf(text);
    isHostname = /^\s*(?:\S*[$#%>]\s+)?hostname(?: -[sf])?\s*$/.test(text);
    if (host !== undefined) parts.push({ host, lines: [] });
    // A prompt ends the output before it.
    else if (barePrompt.test(text)) parts.push({ host: last?.host, lines: [] });
    else last?.lines.push(line);
  }
  return parts.filter((part) => part.lines.length > 0);
}

function hostOf(text: string): string | undefined {
  for (const heading of headings) {
    const host = heading.exec(text)?.groups?.['host'];
    if (host !== undefined && !/^(?:GPU|NIC|NUMA|mlx)/.test(host)) return host;
  }
  return undefined;
}

/** So many of the lines must begin with a host, each host so often. */
const PREFIXED_SHARE = 0.8;
const LEAST_LINES = 4;
const prefix = /^(?:\[1,(?<rank>\d{1,6})\]<stdout>:)?(?:(?<host>[A-Za-z][\w.-]{0,62}|\d{1,5}): ?)?(?<rest>.*)$/;

/** Lines of `pdsh`, `clush`, `srun -l`, `mpirun -tag-output`: `node1: …`; undefined where they have no such prefixes. */
function prefixedLines(lines: readonly ToolLine[]): Map<string, ToolLine[]> | undefined {
  const full = lines.filter(({ text }) => text.trim() !== '');
  const byHost = new Map<string, ToolLine[]>();
  for (const { text, place } of full) {
    const { rank, host = rank, rest = '' } = prefix.exec(text)?.groups ?? {};
    if (host === undefined) continue;
    const own = byHost.get(host);
    if (own === undefined) byHost.set(host, [{ text: rest, place }]);
    else own.push({ text: rest, place });
  }
  for (const [host, own] of byHost) if (own.length < LEAST_LINES) byHost.delete(host);
  const count = [...byHost.values()].reduce((sum, own) => sum + own.length, 0);
  return count > 0 && count >= PREFIXED_SHARE * full.length ? byHost : undefined;
}
