import type { BindingUnit } from '../binding.js';
import type { RankRange } from '../local-ranks.js';
import type { MeetingPoint } from '../meeting-point.js';
import type { Ending } from '../rank-process.js';
import type { RankState } from '../rank-state.js';

/** The ranks that an agent starts. It comes through the pipe of ssh, which no other user can read. */
export interface Preparation {
  readonly type: 'prepare';
  readonly directory: string;
  readonly command: readonly [string, ...string[]];
  /** Variables in addition to those of the host. */
  readonly env: Readonly<Record<string, string>>;
  readonly bindTo: BindingUnit | 'none';
  readonly ranks: RankRange;
  readonly graceMs: number;
  /** Time limit of the job, from its start. */
  readonly timeoutMs?: number | undefined;
  /** Time without a heartbeat after which the other side counts as gone; 0 for never. */
  readonly heartbeatMs: number;
  /** True if the ranks meet on this host. */
  readonly isMeetingHost: boolean;
  /** True if the user named the node that runs the agent: it is the ranks' `node`, too. */
  readonly nodeIsGiven: boolean;
}

/** Messages of the launcher. */
export type ToAgent =
  | Preparation
  | { readonly type: 'start'; readonly meetingPoint: MeetingPoint }
  | { readonly type: 'signal'; readonly signal: NodeJS.Signals }
  /** Number of bytes of output that were written: the agent may send as many more. */
  | { readonly type: 'written'; readonly bytes: number }
  | { readonly type: 'finish' }
  | { readonly type: 'alive' };

/** Messages of the agent. */
export type ToLauncher =
  /** The command was found. `address` is `host:port` where the ranks can meet, if requested. */
  | { readonly type: 'ready'; readonly address?: string }
  | { readonly type: 'refused'; readonly message: string; readonly exitCode: number }
  | { readonly type: 'ended'; readonly rank: number; readonly ending: Ending }
  /** All output of the rank was sent. */
  | { readonly type: 'sent'; readonly rank: number }
  /** Number of bytes of input that rank 0 took. */
  | { readonly type: 'taken'; readonly bytes: number }
  /** No process of the job is left on the host. */
  | { readonly type: 'finished' }
  | { readonly type: 'alive'; readonly states: readonly RankState[] };

/** The agent's first line, after any output of the host's shell. */
export interface Greeting {
  readonly version: string;
  /** `SSH_CONNECTION` there: addresses and ports of both ends. */
  readonly sshConnection: string;
}

export const GREETING_MARK = 'tccl-host-agent ';

/** Bytes of output that an agent sends before it waits for `written`, and of input that it is sent before `taken`. */
export const WINDOW_BYTES = 1024 * 1024;
