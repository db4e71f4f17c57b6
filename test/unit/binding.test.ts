import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { bindRanks } from '../../src/runtime/launch/binding.js';

const roots: string[] = [];
afterEach(() => roots.splice(0).forEach((root) => rmSync(root, { recursive: true })));

/** A machine with two NUMA nodes of two cores with two hardware threads each; the process may use `allowed`. */
function machine(allowed: string): string {
  const root = mkdtempSync(join(tmpdir(), 'tccl-machine-'));
  roots.push(root);
  const files: Record<string, string> = {
    'proc/self/status': `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${allowed}\n`,
    'sys/devices/system/node/node0/cpulist': '0-1,4-5\n',
    'sys/devices/system/node/node1/cpulist': '2-3,6-7\n',
  };
  for (let cpu = 0; cpu < 8; cpu++)
    files[`sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`] = `${cpu % 4},${(cpu % 4) + 4}\n`;
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

describe('binding ranks', () => {
  it('gives each a core with its hardware threads', () => {
    expect(bindRanks('core', 4, machine('0-7'))).toEqual(['0,4', '1,5', '2,6', '3,7']);
  });

  it('uses no CPU that the process may not use', () => {
    expect(bindRanks('core', 2, machine('1,3,7'))).toEqual(['1', '3,7']);
    expect(bindRanks('numa', 2, machine('1,4'))).toEqual(['1,4', '1,4']);
  });

  it('puts consecutive ranks on one NUMA node', () => {
    expect(bindRanks('numa', 3, machine('0-7'))).toEqual(['0,1,4,5', '0,1,4,5', '2,3,6,7']);
  });

  it('refuses more ranks than cores', () => {
    expect(() => bindRanks('core', 3, machine('0,1,4'))).toThrow(
      expect.objectContaining({
        code: 'UNSUPPORTED',
        message: expect.stringContaining('3 ranks need as many cores, but this process may use 2') as string,
      }),
    );
  });

  it('treats all CPUs as one node where the kernel reports none', () => {
    const root = machine('0-3');
    rmSync(join(root, 'sys/devices/system/node'), { recursive: true });
    expect(bindRanks('numa', 1, root)).toEqual(['0,1,2,3']);
  });
});
