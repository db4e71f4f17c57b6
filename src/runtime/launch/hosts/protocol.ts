import type { BindingUnit } from '../binding.js';
import type { RankRange } from '../local-ranks.js';
import type { MeetingPoint } from '../meeting-point.js';
import type { Ending } from '../rank-process.js';

/** What an agent is to start. It comes through the pipe of ssh: nobody else can read it. */
export interface Preparation {
  readonly type: 'prepare';
  readonly directory: string;
  readonly command: readonly [string, ...string[]];
  /** Variables beside those that the host gives. */
  readonly env: Readonly<Record<string, string>>;
  readonly bindTo: BindingUnit | 'none';
  readonly ranks: RankRange;
  readonly graceMs: number;
  /** After so long without a sign of life the other side counts as gone; 0 for never. */
  readonly heartbeatMs: number;
  /** Where the ranks meet is to be on this host. */
  readonly isMeetingHost: boolean;
}

/** Messages of the launcher. */
export type ToAgent =
  | Preparation
  | { readonly type: 'start'; readonly meetingPoint: MeetingPoint }
  | { readonly type: 'signal'; readonly signal: NodeJS.Signals }
  /** So many bytes of output were written: the agent may send as many more. */
  | { readonly type: 'written'; readonly bytes: number }
  | { readonly type: 'finish' }
  | { readonly type: 'alive' };

/** Messages of the agent. */
export type ToLauncher =
  /** The command is there. `address` is `host:port` where the ranks can meet, if asked for. */
  | { readonly type: 'ready'; readonly address?: string }
  | { readonly type: 'refused'; readonly message: string; readonly exitCode: number }
  | { readonly type: 'ended'; readonly rank: number; readonly ending: Ending }
  /** All output of the rank was sent. */
  | { readonly type: 'sent'; readonly rank: number }
  /** Rank 0 took so many bytes of input. */
  | { readonly type: 'taken'; readonly bytes: number }
  /** No process of the job is left on the host. */
  | { readonly type: 'finished' }
  | { readonly type: 'alive' };

/** The agent's first line, after whatever the host's shell prints by itself. */
export interface Greeting {
  readonly version: string;
  /** `SSH_CONNECTION` there: addresses and ports of both ends. */
  readonly sshConnection: string;
}

export const GREETING_MARK = 'tccl-host-agent ';

/** Bytes of output that an agent sends before it waits for `written`, and of input that it is sent before `taken`. */
export const WINDOW_BYTES = 1024 * 1024;
