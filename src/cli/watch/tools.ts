import { InvalidArgumentError } from '../../errors.js';
import type { JobStatus, PlacedRank } from '../../planner/log/live/job-watch.js';
import type { WatchedJob } from '../../planner/log/live/jobs.js';
import type { RasProcess } from '../../planner/readers/ras.js';
import { processStacks, type StackFrame } from '../../planner/readers/stacks.js';
import { outputOf, quoted } from '../shell-command.js';
import { GPU_COMMAND, gpuText, type GpuFields, readGpus } from './gpu-fields.js';
import { isHere } from './here.js';

/** Programs that `tccl watch` runs on the hosts of a job only when asked to. */
export interface ToolOptions {
  readonly gpus?: boolean;
  readonly stacks?: boolean;
  /** Beginning of the names of PyTorch's pipes (TORCH_NCCL_DEBUG_INFO_PIPE_FILE). */
  readonly torchDump?: string;
  /** Way to a host: a command with `{host}` and `{command}`. */
  readonly toolCommand?: string;
}

/** News of one program about a job, as text and as fields of JSON. */
export interface ToolNews {
  readonly text: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Time after which a program on a host is given up. */
const ANSWER_MS = 15_000;
/** Most ranks whose stacks are read, and hosts whose GPUs are. */
const MOST_LOOKED_AT = 8;
/** Hosts that are asked at a time. */
const AT_A_TIME = 16;
/** Innermost calls of a stack that are shown. */
const MOST_FRAMES = 5;

/**
 * Runs `nvidia-smi` and `py-spy dump` where the ranks are that hold a job up, and asks PyTorch for flight recordings, each only
 * where an option says so, and once each time a job comes to stand still.
 */
export class Tools {
  readonly #options: ToolOptions;
  readonly #say: (job: WatchedJob, news: ToolNews) => void;
  /** By job: the trouble that was looked at. */
  readonly #seen = new Map<number, string>();

  /** @param say gets each piece of news as it comes */
  constructor(options: ToolOptions, say: (job: WatchedJob, news: ToolNews) => void) {
    const { toolCommand } = options;
    if (toolCommand !== undefined && !(toolCommand.includes('{host}') && toolCommand.includes('{command}')))
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        "--tool-command needs {host} and {command}, as in 'kubectl exec {host} -- sh -c {command}'",
      );
    this.#options = options;
    this.#say = say;
  }

  static isAsked({ gpus, stacks, torchDump }: ToolOptions): boolean {
    return gpus === true || stacks === true || torchDump !== undefined;
  }

  /**
   * Looks at a job that has come to stand still, or whose late ranks are others than before. Returns true if it has.
   * @param isLast true if there is no later report, so that a suspicion must do
   */
  async update(job: WatchedJob, isLast: boolean, signal: AbortSignal): Promise<boolean> {
    const { number, status } = job;
    const isTrouble = status.state === 'stuck' || status.state === 'dead' || (isLast && status.state === 'suspect');
    const trouble = isTrouble
      ? status.look.map(({ rank, process: { host, pid } }) => `${rank} ${host} ${pid}`).join()
      : undefined;
    if (trouble === undefined) this.#seen.delete(number);
    if (trouble === undefined || this.#seen.get(number) === trouble) return false;
    const isNew = !this.#seen.has(number);
    this.#seen.set(number, trouble);
    const say = (news: ToolNews) => this.#say(job, news);
    const { gpus, stacks, torchDump } = this.#options;
    await Promise.all([
      gpus === true ? this.#askGpus(status, say, signal) : undefined,
      stacks === true ? this.#askStacks(status, say, signal) : undefined,
      torchDump !== undefined && isNew ? this.#askRecordings(status, torchDump, say, signal) : undefined,
    ]);
    return true;
  }

  async #askGpus({ look }: JobStatus, say: (news: ToolNews) => void, signal: AbortSignal): Promise<void> {
    const hosts = [...new Set(look.map(({ process }) => process.host))].slice(0, MOST_LOOKED_AT);
    await inBatches(hosts, async (host) => {
      const { stdout, problem } = await this.#run('nvidia-smi', host, GPU_COMMAND, signal);
      const gpus = readGpus(stdout);
      if (gpus.length === 0) say({ text: problem, facts: { tool: 'nvidia-smi', host, problem } });
      for (const { rank, process } of look.filter((placed) => placed.process.host === host)) {
        const gpu = gpuOf(process, gpus);
        if (gpu === undefined) continue;
        say({
          text: `${title({ rank, process })}: GPU ${gpu.index}: ${gpuText(gpu)}`,
          facts: { tool: 'nvidia-smi', host, rank, pid: process.pid, gpu },
        });
      }
    });
  }

  async #askStacks({ look }: JobStatus, say: (news: ToolNews) => void, signal: AbortSignal): Promise<void> {
    await inBatches(look.slice(0, MOST_LOOKED_AT), async ({ rank, process }) => {
      const { host, pid } = process;
      const { stdout, problem } = await this.#run('py-spy', host, `py-spy dump --pid ${pid}`, signal);
      const lines = stdout.split(/\r?\n/).map((text, line) => ({ text, place: { file: 0, line: line + 1 } }));
      const threads = processStacks.parse(lines)?.processes.flatMap((each) => each.threads) ?? [];
      const main = threads.find(({ name }) => name === 'MainThread') ?? threads[0];
      if (main === undefined) say({ text: problem, facts: { tool: 'py-spy', host, rank, pid, problem } });
      else
        say({
          text: `${title({ rank, process })} is in ${stackText(main.frames)}`,
          facts: { tool: 'py-spy', host, rank, pid, threads },
        });
    });
  }

  /** Writes into the pipes that PyTorch reads, on all hosts of the job. */
  async #askRecordings({ hosts }: JobStatus, prefix: string, say: (news: ToolNews) => void, signal: AbortSignal): Promise<void> {
    // A pipe that no process reads would block the shell.
    const command = `for p in ${quoted(prefix)}*.pipe; do test -p "$p" || continue; timeout 2 sh -c 'echo 1 > "$0"' "$p" && echo "$p"; done; true`;
    say({
      text: `asks PyTorch for its flight recordings: writes to ${prefix}*.pipe on ${hosts.length === 1 ? hosts[0] : `${hosts.length} hosts`}`,
      facts: { tool: 'torch', asks: `${prefix}*.pipe`, hosts },
    });
    await inBatches(hosts, async (host) => {
      const { stdout, problem } = await this.#run('the shell', host, command, signal);
      const pipes = stdout.split('\n').filter((line) => line !== '');
      const text =
        pipes.length > 0
          ? `${host}: ${pipes.length} ${pipes.length === 1 ? 'process writes its recording' : 'processes write their recordings'}`
          : problem.includes('printed nothing')
            ? `${host}: no process reads a pipe ${prefix}*.pipe: TORCH_NCCL_DEBUG_INFO_PIPE_FILE and TORCH_NCCL_TRACE_BUFFER_SIZE must be set before the job starts`
            : problem;
      say({ text, facts: { tool: 'torch', host, pipes, ...(pipes.length > 0 ? {} : { problem: text }) } });
    });
  }

  /** Output of a program on a host, and a line that says why there is none. */
  async #run(
    tool: string,
    host: string,
    command: string,
    signal: AbortSignal,
  ): Promise<{ readonly stdout: string; readonly problem: string }> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
    try {
      const { code, stdout, stderr } = await outputOf(this.#on(host, command), limit);
      const said = `${stderr}\n${stdout}`.split('\n').filter((line) => line.trim() !== '');
      const why = code === 127 ? `${tool} is not installed there, or not in PATH` : (said[0]?.trim() ?? 'it printed nothing');
      return { stdout, problem: `${tool} on ${host}: ${why}` };
    } catch (error) {
      if (signal.aborted) return { stdout: '', problem: `${tool} on ${host}: ended before an answer` };
      if (!limit.aborted) throw error;
      return { stdout: '', problem: `${tool} on ${host}: no answer within ${ANSWER_MS / 1000} s` };
    }
  }

  #on(host: string, command: string): string {
    const { toolCommand } = this.#options;
    if (toolCommand === undefined && isHere(host)) return command;
    const template = toolCommand ?? `${process.env['TCCL_SSH'] ?? 'ssh'} -o BatchMode=yes -o ConnectTimeout=5 {host} {command}`;
    return template.replaceAll('{host}', quoted(host)).replaceAll('{command}', () => quoted(command));
  }
}

/** The GPU of a process: by its number on the host, which containers hide, or by its place in NVML's order. */
function gpuOf({ pid, nvml, gpu }: RasProcess, gpus: readonly GpuFields[]): GpuFields | undefined {
  return gpus.find(({ pids }) => pids.includes(pid)) ?? gpus.find(({ index }) => index === (nvml ?? gpu));
}

function title({ rank, process: { host, pid } }: PlacedRank): string {
  return rank === undefined ? `process ${pid} on ${host}` : `rank ${rank} (${host}, pid ${pid})`;
}

/** `wait (threading.py:331) < get (queue.py:171) < train (train.py:88)`. */
function stackText(frames: readonly StackFrame[]): string {
  const shown = frames.slice(0, MOST_FRAMES).map(({ name, file }) => `${name} (${file})`);
  return frames.length === 0 ? 'no Python code' : `${shown.join(' < ')}${frames.length > MOST_FRAMES ? ' < …' : ''}`;
}

async function inBatches<Item>(items: readonly Item[], run: (item: Item) => Promise<void>): Promise<void> {
  for (let from = 0; from < items.length; from += AT_A_TIME) await Promise.all(items.slice(from, from + AT_A_TIME).map(run));
}
