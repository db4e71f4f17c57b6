import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { homeCores, moveTo } from '../../../../src/runtime/device/affinity.js';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';

const { libc } = loadLibc();

const made: string[] = [];
afterAll(() => {
  for (const root of made) rmSync(root, { recursive: true });
});

/** A machine whose NUMA nodes have these cores. */
function machine(nodes: readonly string[], allowed: string): string {
  const root = mkdtempSync(join(tmpdir(), 'tccl-affinity-'));
  made.push(root);
  mkdirSync(join(root, 'proc/self'), { recursive: true });
  writeFileSync(join(root, 'proc/self/status'), `Name:\tnode\nCpus_allowed_list:\t${allowed}\n`);
  nodes.forEach((cores, node) => {
    mkdirSync(join(root, `sys/devices/system/node/node${node}`), { recursive: true });
    writeFileSync(join(root, `sys/devices/system/node/node${node}/cpulist`), `${cores}\n`);
  });
  return root;
}

const homes = (root: string, nLocalRanks: number, ignoreMask = false): (readonly number[] | undefined)[] =>
  Array.from({ length: nLocalRanks }, (_, localRank) => homeCores({ root, localRank, nLocalRanks, ignoreMask }));

test('a rank whose mask is within one node is not moved', () => {
  expect(homes(machine(['0-7'], '0-7'), 2)).toEqual([undefined, undefined]);
  expect(homes(machine(['0-3', '4-7'], '4-7'), 2)).toEqual([undefined, undefined]);
  expect(homes(machine([], '0-3'), 1)).toEqual([undefined]);
});

test('ranks of a host are spread over the nodes of their mask, neighbours together, and stay in the mask', () => {
  const root = machine(['0-3', '4-7', '', '8-11'], '2-5');
  expect(homes(root, 4)).toEqual([
    [2, 3],
    [2, 3],
    [4, 5],
    [4, 5],
  ]);
  expect(homes(root, 1)).toEqual([[2, 3]]);
});

test('the mask is ignored on demand', () => {
  expect(homes(machine(['0-3', '4-7'], '2,5'), 2, true)).toEqual([
    [0, 1, 2, 3],
    [4, 5, 6, 7],
  ]);
  expect(homes(machine(['0-3', '4-7'], '1'), 1, true)).toEqual([[0, 1, 2, 3]]);
});

test.runIf(libc !== undefined)('a thread is moved, and moved back', () => {
  const before = libc!.affinity();
  const goBack = moveTo(libc!, before.slice(0, 1));
  expect(libc!.affinity()).toEqual(before.slice(0, 1));
  goBack();
  expect(libc!.affinity()).toEqual(before);
  // For cores that do not exist it stays.
  moveTo(libc!, [8191])();
  expect(libc!.affinity()).toEqual(before);
});

test("a segment allocates memory on the rank's node and moves the thread back, also after a failure", () => {
  const segment = Segment.ofThreads(createMemory(1024), 0, 1);
  const moves: string[] = [];
  segment.takeMemoryAt(() => {
    moves.push('home');
    return () => moves.push('back');
  });
  segment.alloc(Float32Array, 1000);
  expect(moves.length).toBeGreaterThan(0);
  expect(() => segment.alloc(Float32Array, 2 ** 28)).toThrow();
  expect(moves.filter((move) => move === 'home')).toHaveLength(moves.length / 2);
  expect(moves.at(-1)).toBe('back');
});
