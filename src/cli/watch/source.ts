import { InputError, SystemError } from '../../errors.js';
import { outputOf, quoted } from '../shell-command.js';
import { isHere, otherUserAt } from './here.js';
import { addressText, askRas, EXTRA_MS, followRas, rasAddress } from './ras-client.js';
import { type GivenReport, readReport } from '../../planner/readers/ras-report.js';

/** A place that reports come from. */
export interface ReportSource {
  /** As the user gave it. */
  readonly name: string;
  ask(signal: AbortSignal): Promise<GivenReport>;
  /** The other user whose job answers, as far as known. */
  otherUser?(): string | undefined;
  /** Reports events for as long as the process lives; a command has none. */
  follow?(onEvent: (event: string) => void, signal: AbortSignal): Promise<void>;
}

/** The socket of RAS at an address. */
export function socketSource(target: string, seconds: number): ReportSource {
  const address = rasAddress(target);
  return {
    name: addressText(address),
    ask: (signal) => askRas(address, seconds, signal),
    otherUser: () => (isHere(address.host) ? otherUserAt(address.port) : undefined),
    follow: (onEvent, signal) => followRas(address, onEvent, signal),
  };
}

/** A command that prints a report, as `ssh {host} ncclras -f json`; `{host}` is replaced by the target. */
export function commandSource(template: string, target: string, seconds: number): ReportSource {
  const command = template.replaceAll('{host}', quoted(target));
  return { name: target === '' ? template : target, ask: (signal) => askCommand(command, 1000 * seconds + EXTRA_MS, signal) };
}

async function askCommand(command: string, limitMs: number, signal: AbortSignal): Promise<GivenReport> {
  const limit = AbortSignal.timeout(limitMs);
  const { code, stdout, stderr } = await outputOf(command, AbortSignal.any([signal, limit])).catch((error: unknown) => {
    if (!limit.aborted) throw error;
    throw new SystemError('TIMEOUT', `\`${command}\` did not end within ${limitMs / 1000} s; --timeout gives it longer`);
  });
  if (stdout.trim() === '') {
    const [why = 'it printed nothing'] = stderr
      .trim()
      .split('\n')
      .slice(-1)
      .filter((line) => line !== '');
    throw new SystemError('NETWORK', `\`${command}\` gave no report: ${why} (exit code ${code ?? 'none'})`);
  }
  try {
    return readReport(stdout);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new InputError(
      'CONTENT',
      `what \`${command}\` prints ${error.message}: '${stdout.trim().split('\n', 1)[0]?.slice(0, 60) ?? ''}'`,
    );
  }
}
