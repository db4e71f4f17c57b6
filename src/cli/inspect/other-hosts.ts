import { readFileSync, realpathSync } from 'node:fs';
import { describeError, InputError, SystemError } from '../../errors.js';
import { outputOf, quoted } from '../shell-command.js';
import type { HostReport } from './host-report.js';

/** Time after which a host counts as silent. */
const ANSWER_MS = 10_000;

interface Answers {
  readonly reports: readonly HostReport[];
  /** One line about each host without an answer. */
  readonly problems: readonly string[];
}

/**
 * Runs `tccl inspect --here` on other hosts, all at a time.
 * @param template command in which `{host}` stands for the host; by default ssh, and the same paths as here
 * @param calls true for the last calls of each rank, too
 */
export async function askHosts(
  hosts: readonly string[],
  { template = ownCommand(), calls = false }: { readonly template?: string | undefined; readonly calls?: boolean | undefined },
): Promise<Answers> {
  const command = calls ? template.replace(/(?<=\binspect\W+)--here\b/, '--here --calls') : template;
  const answers = await Promise.all(
    hosts.map(async (host): Promise<HostReport | string> => {
      try {
        const report = await askHost(command.replaceAll('{host}', quoted(host)));
        // Ranks know their host by the name that it had at the start.
        return { ...report, host };
      } catch (error) {
        return (
          `${host} did not answer: ${(error as Error).message}; run \`tccl inspect --here > ${host}.json\` there, ` +
          `and give the file here: --report ${host}.json`
        );
      }
    }),
  );
  return {
    reports: answers.filter((answer) => typeof answer !== 'string'),
    problems: answers.filter((answer) => typeof answer === 'string'),
  };
}

function ownCommand(): string {
  const ssh = process.env['TCCL_SSH'] ?? 'ssh';
  const words = [process.execPath, realpathSync(process.argv[1] ?? ''), 'inspect', '--here'].map(quoted).join(' ');
  return `${ssh} -o BatchMode=yes -o ConnectTimeout=5 {host} ${quoted(words)}`;
}

async function askHost(command: string): Promise<HostReport> {
  const { code, stdout, stderr } = await outputOf(command, AbortSignal.timeout(ANSWER_MS));
  if (stdout.trim() === '') {
    const why = stderr.trim().split('\n').at(-1) ?? '';
    throw new SystemError(
      'NETWORK',
      `\`${command}\` gave no report: ${why === '' ? 'it printed nothing' : why} (exit code ${code ?? 'none'})`,
    );
  }
  return parseReport(stdout);
}

/** Reports of hosts in files. @throws InputError `FILE`, `CONTENT` */
export function reportsIn(files: readonly string[]): HostReport[] {
  return files.map((file) => {
    try {
      return parseReport(readFileSync(file, 'utf8'));
    } catch (cause) {
      if (cause instanceof InputError) throw new InputError('CONTENT', cause.message, { file });
      throw new InputError('FILE', describeError(cause), { file, cause });
    }
  });
}

/** A report that another host printed. @throws InputError `CONTENT` */
function parseReport(text: string): HostReport {
  let value: Partial<HostReport> | null;
  try {
    value = JSON.parse(text) as Partial<HostReport> | null;
  } catch {
    value = null;
  }
  if (typeof value?.host !== 'string' || typeof value.atMs !== 'number' || !Array.isArray(value.ranks))
    throw new InputError('CONTENT', `what it printed is no report of tccl inspect: '${text.slice(0, 60)}'`);
  return value as HostReport;
}
