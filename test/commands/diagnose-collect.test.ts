import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-collect-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const tools = join(folder, 'bin');
mkdirSync(tools);
function tool(name: string, text: string): void {
  writeFileSync(join(tools, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(tools, name), 0o755);
}
tool('uname', 'echo "${STAND_IN_HOST:-here}"');
// An ssh that runs the command here, under the other host's name; it cannot reach `down`.
tool(
  'ssh',
  'while [ "$1" = -o ]; do shift 2; done\n[ "$1" = down ] && { echo "ssh: connect to host down port 22: No route to host" >&2; exit 255; }\nSTAND_IN_HOST=${1#*@} exec "$2"',
);
tool(
  'nvidia-smi',
  'case "$1 $STAND_IN_HOST" in "-q gpu2") printf "==============NVSMI LOG==============\\n\\nGPU 00000000:1B:00.0\\n    Fabric\\n        State                             : In Progress\\n        Status                            : N/A\\n" ;; esac',
);
tool('dmesg', 'exit 1');
tool('journalctl', 'echo "started: tool --api-key abcdef-123 https://user:word@host/x Bearer abcdefghijklmnop"');

async function script(...options: string[]): Promise<string> {
  const { code, stdout, stderr } = await tccl(['diagnose', '--collect', ...options]);
  expect([code, stderr]).toEqual([0, '']);
  const file = join(folder, `collect${options.length}.sh`);
  writeFileSync(file, stdout);
  return file;
}

function run(file: string, into: string) {
  return spawnSync('sh', [file, into], {
    encoding: 'utf8',
    env: {
      PATH: `${tools}:${process.env['PATH'] ?? ''}`,
      NCCL_SOCKET_IFNAME: 'eth0',
      VLLM_API_KEY: 'value-of-key',
      NCCL_NOTE: 'hf_abcdefghijklmnop',
      OTHER: 'unnamed',
    },
  });
}

describe('tccl diagnose --collect', () => {
  it('prints a script that gathers outputs of this host, without secrets', async () => {
    const into = join(folder, 'one');
    const { status, stderr } = run(await script(), into);
    expect([status, stderr]).toEqual([0, `Put the output of the job into ${into}, too; then: tccl diagnose ${into}\n`]);
    expect(readdirSync(into)).toEqual(['here.txt']);
    const text = readFileSync(join(into, 'here.txt'), 'utf8');
    expect(text).toContain('# tccl: host here, command cat /proc/self/limits');
    expect(text).toContain('NCCL_SOCKET_IFNAME=eth0');
    expect(text).toContain('VLLM_API_KEY=(masked)');
    expect(text).toContain('--api-key (masked) https://(masked)@host/x (masked)');
    for (const secret of ['value-of-key', 'hf_abc', 'unnamed', 'abcdef-123', 'word@', 'abcdefghijklmnop'])
      expect(text).not.toContain(secret);
  });

  it('gathers from hosts by ssh, and the folder names the faulty one', async () => {
    const into = join(folder, 'hosts');
    const { status, stderr } = run(await script('--hosts', 'gpu1,me@gpu2,down'), into);
    expect(status).toBe(1);
    expect(stderr).toContain('collect: ssh down failed');
    expect(readdirSync(into).sort()).toEqual(['down.txt', 'gpu1.txt', 'gpu2.txt']);
    const { code, stdout } = await tccl(['diagnose', into, '--json']);
    expect(code).toBe(1);
    const { findings } = JSON.parse(stdout) as { findings: { code: string; problem: string }[] };
    expect(findings[0]).toMatchObject({ code: 'nvlink-fabric-not-ready' });
    expect(findings[0]?.problem).toContain('gpu2');
  });

  it.each([
    [['--collect', '--hosts', "a'b"], "not 'a'b'"],
    [['--collect', '--hosts', '-oProxyCommand=x'], "not '-oProxyCommand=x'"],
    [['--collect', 'job.log'], 'takes no files'],
    [['--hosts', 'a', 'job.log'], '--hosts goes with --collect'],
    [[], 'needs files'],
  ])('refuses %j', async (words, reason) => {
    const { code, stderr } = await tccl(['diagnose', ...words]);
    expect(code).toBe(2);
    expect(stderr).toContain(reason);
  });
});
