import { closeSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { inodeOf, noRanks, ParkedRanks, type WakePipe, type RankSet } from '../../../../src/runtime/device/parked-ranks.js';

const COUNT = 1984 / 4;

function ranks(n: number): { readonly words: Int32Array; readonly of: ParkedRanks[] } {
  const memory = createMemory(64);
  const of = Array.from({ length: n }, (_, rank) => new ParkedRanks(memory, rank, n));
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

function wakePipe(): { readonly pipe: WakePipe; readonly written: () => number } {
  const loaded = loadLibc();
  if (!('libc' in loaded)) throw new Error(loaded.reason);
  const { readEnd, writeEnd } = loaded.libc.pipe();
  onTestFinished(() => {
    closeSync(readEnd);
    closeSync(writeEnd);
  });
  const written = (): number => {
    try {
      return readSync(readEnd, new Uint8Array(64));
    } catch {
      return 0;
    }
  };
  return { pipe: { fd: writeEnd, pid: process.pid, inode: inodeOf(writeEnd) }, written };
}

test('a rank wakes the parked ranks that wait for it, once each, and no others', () => {
  const { words, of } = ranks(40);
  const first = wakePipe();
  const second = wakePipe();
  of[3]!.register(first.pipe, setOf(0, 39));
  of[4]!.register(second.pipe, setOf(1));
  of[2]!.wake();
  expect([first.written(), second.written(), words[COUNT]]).toEqual([0, 0, 2]);
  of[39]!.wake();
  of[39]!.wake();
  of[0]!.wake();
  expect([first.written(), second.written(), words[COUNT]]).toEqual([1, 0, 1]);
  of[3]!.unregister();
  of[4]!.unregister();
  expect(words[COUNT]).toBe(0);
  of[1]!.wake();
  expect(second.written()).toBe(0);
});

test('a rank can park repeatedly', () => {
  const { words, of } = ranks(2);
  const { pipe: own, written } = wakePipe();
  for (let round = 0; round < 1000; round++) {
    of[0]!.register(own, setOf(1));
    if (round % 2 === 0) of[1]!.wake();
    of[0]!.unregister();
  }
  expect([written() > 0, words[COUNT]]).toEqual([true, 0]);
});

test('a file that has the number of a closed pipe is not written to', () => {
  const { of } = ranks(2);
  const path = join(tmpdir(), `tccl-no-pipe-${process.pid}`);
  const fd = openSync(path, 'w');
  onTestFinished(() => {
    closeSync(fd);
    rmSync(path);
  });
  of[0]!.register({ fd, pid: process.pid, inode: inodeOf(fd) ^ 1 }, setOf(1));
  of[1]!.wake();
  expect(readFileSync(path)).toHaveLength(0);
});

test('a rank whose pipe others cannot open knows that it has to poll', () => {
  const { of } = ranks(2);
  const here = wakePipe();
  // A file that is not the pipe, as a process of another container with that number might have.
  const elsewhere = { ...here.pipe, inode: here.pipe.inode ^ 1 };
  expect(of[0]!.canBeWoken).toBe(true);
  of[0]!.register(elsewhere, setOf(1));
  of[1]!.wake();
  expect([of[0]!.canBeWoken, of[1]!.canBeWoken, here.written()]).toEqual([false, true, 0]);
});
