import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { oracleCommand } from '../../../testing/oracle/command.js';

const xml =
  '<system version="1"><cpu numaid="0" affinity="f" arch="arm64"><pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci></cpu></system>';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tccl-oracle-'));
});

afterEach(() => {
  rmSync(directory, { recursive: true });
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

function addCase(name: string, maxBw: number): void {
  const folder = join(directory, name);
  mkdirSync(folder);
  const nodeType = { xml: 'topo.xml', localRanks: [0], inter: 0, maxBw, totalBw: 5000, nvlsSupport: 0 };
  writeFileSync(
    join(folder, 'case.json'),
    JSON.stringify({ nodes: [{ xml: 'topo.xml', count: 1 }], nRanks: 1, omitted: ['system', 'paths'] }),
  );
  writeFileSync(join(folder, 'expected.json'), JSON.stringify({ nodeTypes: [nodeType] }));
  writeFileSync(join(folder, 'topo.xml'), xml);
}

/** Output of the command, and its exit code. */
function oracle(...args: string[]): { output: string; exitCode: unknown } {
  let output = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    output += String(text);
    return true;
  });
  oracleCommand()
    .exitOverride()
    .parse([directory, ...args], { from: 'user' });
  return { output, exitCode: process.exitCode };
}

describe('npm run oracle', () => {
  it('counts per section, names the differences and exits with 1', () => {
    addCase('right', 5000);
    addCase('wrong', 1);
    const { output, exitCode } = oracle('--sections', 'nodeTypes,system');
    expect(output).toContain('differs wrong nodeTypes: nodeTypes[0].maxBw: NCCL 1, here 5000');
    expect(output).toMatch(/nodeTypes +1 +1 +0/);
    expect(output).toMatch(/system +0 +0 +2/);
    expect(exitCode).toBe(1);
  });

  it('exits with 0 when all is equal, and prints JSON', () => {
    addCase('right', 5000);
    addCase('wrong', 1);
    const { output, exitCode } = oracle('--sections', 'nodeTypes', '--filter', 'right', '--json');
    expect(JSON.parse(output)).toMatchObject({
      cases: 1,
      sections: [{ section: 'nodeTypes', passed: 1, failed: 0, skipped: 0 }],
      failures: [],
    });
    expect(exitCode).toBe(0);
  });

  it('refuses an unknown section and a folder without cases', () => {
    expect(() => oracle('--sections', 'path')).toThrow(/no section path; did you mean paths\?/);
    expect(() => oracle()).toThrow(/no folder with a case.json/);
  });
});
