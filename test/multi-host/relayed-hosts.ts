import { execFileSync, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { whyNoHosts } from './two-hosts.js';

/** Treatment of packets in one direction; relay.mjs describes the fields. */
export interface Way {
  readonly delayMs?: number;
  readonly loss?: number;
  readonly duplicate?: number;
  readonly reorder?: number;
  readonly holdMs?: number;
  readonly dropAbove?: number;
  readonly mbitPerS?: number;
  readonly queueBytes?: number;
  readonly down?: boolean;
}

/** Packets of one direction so far. */
export interface WayCount {
  readonly passed: number;
  readonly lost: number;
}

/**
 * Two network namespaces whose packets pass through a relay in user space:
 *
 *     host a                                         host b
 *     tccl0  10.213.82.1  ◄────── relay.mjs ──────►  tccl0  10.213.82.2
 */
export interface RelayedHosts {
  /** Prefixes of commands that run on a host. */
  readonly on: readonly [a: readonly string[], b: readonly string[]];
  /** Address of host a. */
  readonly root: string;
  /** Sets the treatment of packets from a to b and from b to a. Returns the counts until then. */
  set(fromA: Way, fromB: Way): Promise<readonly WayCount[]>;
  remove(): void;
}

/** The reason why there can be no relay here; undefined where there can. */
export function whyNoRelay(): string | undefined {
  const reason = whyNoHosts();
  if (reason !== undefined) return reason;
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK);
    return undefined;
  } catch {
    return '/dev/net/tun is missing';
  }
}

export async function makeRelayedHosts(): Promise<RelayedHosts> {
  const names = ['a', 'b'].map((letter) => `tccl-relay-${letter}-${process.pid}`) as [string, string];
  const ip = (...args: string[]): string => execFileSync('ip', args, { stdio: 'pipe' }).toString();
  for (const name of names) ip('netns', 'add', name);
  const relay = spawn(process.execPath, [fileURLToPath(new URL('relay.mjs', import.meta.url)), ...names], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const remove = (): void => {
    relay.kill('SIGKILL');
    for (const name of names) ip('netns', 'del', name);
  };
  const lines = createInterface({ input: relay.stdout })[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => {
    const line = await lines.next();
    if (line.done === true) throw new Error('the relay has ended');
    return line.value;
  };
  try {
    await nextLine();
    for (const [host, name] of names.entries()) {
      ip('-n', name, 'link', 'set', 'lo', 'up');
      ip('-n', name, 'address', 'add', `10.213.82.${host + 1}/24`, 'dev', 'tccl0');
      ip('-n', name, 'link', 'set', 'tccl0', 'up');
    }
  } catch (error) {
    remove();
    throw error;
  }
  return {
    on: [
      ['ip', 'netns', 'exec', names[0]],
      ['ip', 'netns', 'exec', names[1]],
    ],
    root: '10.213.82.1',
    async set(...ways) {
      const answer = nextLine();
      relay.stdin.write(`${JSON.stringify(ways)}\n`);
      return JSON.parse(await answer) as WayCount[];
    },
    remove,
  };
}
