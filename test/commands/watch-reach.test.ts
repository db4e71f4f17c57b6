import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { otherUserAt, reasonHere } from '../../src/cli/watch/here.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-reach-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface ShownProcess {
  readonly library?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly network?: string;
}

/** Files of a process with NCCL, as Linux shows them, beside another process and this one. */
function processes({ library = 'libnccl.so.2', environment = {}, network = 'net:[1]' }: ShownProcess): string {
  const proc = mkdtempSync(join(folder, 'proc-'));
  const add = (pid: string, maps: string, variables: object, net: string) => {
    mkdirSync(join(proc, pid, 'ns'), { recursive: true });
    writeFileSync(join(proc, pid, 'maps'), maps);
    const lines = Object.entries(variables).map(([name, value]) => `${name}=${String(value)}\0`);
    writeFileSync(join(proc, pid, 'environ'), lines.join(''));
    symlinkSync(net, join(proc, pid, 'ns/net'));
  };
  add('self', '', {}, 'net:[1]');
  add('7', '7f00-7f01 r-xp 00000000 08:01 5 /usr/lib/libc.so.6\n', { NCCL_RAS_ENABLE: '0' }, 'net:[2]');
  add('812', `7f00-7f01 r-xp 00000000 08:01 9 /usr/lib/${library}\n`, { HOME: '/root', ...environment }, network);
  return proc;
}

describe('where RAS does not answer on this host', () => {
  it.each<[string, ShownProcess, RegExp | undefined]>([
    ['an old version', { library: 'libnccl.so.2.18.5' }, /^process 812 has NCCL 2\.18\.5, and RAS came with 2\.24: /],
    ['RAS is disabled', { environment: { NCCL_RAS_ENABLE: '0' } }, /^process 812 runs with NCCL_RAS_ENABLE=0: /],
    ['a container', { network: 'net:[2]' }, /^process 812 has a network of its own, .*nsenter --target 812 --net tccl watch/],
    ['another address', { environment: { NCCL_RAS_ADDR: 'localhost:28030' } }, /`tccl watch localhost:28030`$/],
    ['the address that was asked', { environment: { NCCL_RAS_ADDR: 'localhost:28028' } }, undefined],
    ['no reason', { library: 'libnccl.so.2.27.5' }, undefined],
  ])('names the process and the way in: %s', (_, shown, words) => {
    const reason = reasonHere(28_028, processes(shown));
    if (words === undefined) expect(reason).toBeUndefined();
    else expect(reason).toMatch(words);
  });

  it('knows the user whose job holds the port', () => {
    const proc = mkdtempSync(join(folder, 'proc-'));
    mkdirSync(join(proc, 'net'));
    // 28028 is 6D7C: user 4242 listens there; user 1000 is connected to it, and listens at another port.
    const rows = ['0100007F:6D7C 00000000:0000 0A', '0100007F:6D7C 0100007F:D431 01', '0100007F:6D7D 00000000:0000 0A'];
    const users = [4242, 1000, 1000];
    const lines = rows.map((row, i) => `   ${i}: ${row} 00000000:00000000 00:00000000 00000000  ${users[i]}        0 1 1`);
    writeFileSync(join(proc, 'net/tcp'), `  sl  local_address rem_address   st tx_queue\n${lines.join('\n')}\n`);
    expect(otherUserAt(28_028, proc, 1000)).toBe('uid 4242');
    expect(otherUserAt(28_028, proc, 4242)).toBeUndefined();
    expect(otherUserAt(28_029, proc, 1000)).toBeUndefined();
    expect(otherUserAt(28_030, proc, 1000)).toBeUndefined();
    expect(otherUserAt(28_028, proc, 0)).toBeUndefined();
  });
});
