import { closeSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { inodeOf, noRanks, Sleepers, type Bell, type RankSet } from '../../../../src/runtime/device/sleepers.js';

const COUNT = 1984 / 4;

function ranks(n: number): { readonly words: Int32Array; readonly of: Sleepers[] } {
  const memory = createMemory(64);
  const of = Array.from({ length: n }, (_, rank) => new Sleepers(memory, rank, n));
  onTestFinished(() => {
    for (const one of of) one.close();
  });
  return { words: new Int32Array(memory.buffer), of };
}

function setOf(...members: number[]): RankSet {
  const set = noRanks();
  for (const rank of members) set[rank >> 5]! |= 1 << (rank & 31);
  return set;
}

function bell(): { readonly bell: Bell; readonly rung: () => number } {
  const loaded = loadLibc();
  if (!('libc' in loaded)) throw new Error(loaded.reason);
  const { readEnd, writeEnd } = loaded.libc.pipe();
  onTestFinished(() => {
    closeSync(readEnd);
    closeSync(writeEnd);
  });
  const rung = (): number => {
    try {
      return readSync(readEnd, new Uint8Array(64));
    } catch {
      return 0;
    }
  };
  return { bell: { fd: writeEnd, pid: process.pid, inode: inodeOf(writeEnd) }, rung };
}

test('a rank wakes those that sleep until it has done something, once a sleep, and nobody else', () => {
  const { words, of } = ranks(40);
  const first = bell();
  const second = bell();
  of[3]!.lieDown(first.bell, setOf(0, 39));
  of[4]!.lieDown(second.bell, setOf(1));
  of[2]!.ring();
  expect([first.rung(), second.rung(), words[COUNT]]).toEqual([0, 0, 2]);
  of[39]!.ring();
  of[39]!.ring();
  of[0]!.ring();
  expect([first.rung(), second.rung(), words[COUNT]]).toEqual([1, 0, 1]);
  of[3]!.getUp();
  of[4]!.getUp();
  expect(words[COUNT]).toBe(0);
  of[1]!.ring();
  expect(second.rung()).toBe(0);
});

test('a sleeper can lie down again and again', () => {
  const { words, of } = ranks(2);
  const { bell: own, rung } = bell();
  for (let sleep = 0; sleep < 1000; sleep++) {
    of[0]!.lieDown(own, setOf(1));
    if (sleep % 2 === 0) of[1]!.ring();
    of[0]!.getUp();
  }
  expect([rung() > 0, words[COUNT]]).toEqual([true, 0]);
});

test('a file that has the number of a pipe that is gone is not written to', () => {
  const { of } = ranks(2);
  const path = join(tmpdir(), `tccl-no-pipe-${process.pid}`);
  const fd = openSync(path, 'w');
  onTestFinished(() => {
    closeSync(fd);
    rmSync(path);
  });
  of[0]!.lieDown({ fd, pid: process.pid, inode: inodeOf(fd) ^ 1 }, setOf(1));
  of[1]!.ring();
  expect(readFileSync(path)).toHaveLength(0);
});

test('a rank whose pipe others cannot open is known not to be woken, so that it looks for itself', () => {
  const { of } = ranks(2);
  const here = bell();
  // A file that is not the pipe, as a process of another container with that number might have.
  const elsewhere = { ...here.bell, inode: here.bell.inode ^ 1 };
  expect(of[0]!.canBeWoken).toBe(true);
  of[0]!.lieDown(elsewhere, setOf(1));
  of[1]!.ring();
  expect([of[0]!.canBeWoken, of[1]!.canBeWoken, here.rung()]).toEqual([false, true, 0]);
});
