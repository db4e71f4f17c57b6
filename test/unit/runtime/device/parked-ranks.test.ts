import { closeSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { inodeOf, noRanks, ParkedRanks, type WakePipe, type RankSet } from '../../../../src/runtime/device/parked-ranks.js';

const COUNT = 1984 / 4;
const MOST_THREADS = 224;

interface Ranks {
  readonly words: Int32Array;
  readonly of: ParkedRanks[];
  /** Another thread of a rank. */
  readonly threadOf: (rank: number, line: number) => ParkedRanks;
}

function ranks(n: number): Ranks {
  const memory = createMemory(64);
  const of = Array.from({ length: n }, (_, rank) => new ParkedRanks(memory, rank, n));
  onTestFinished(() => {
    for (const one of of) one.close();
  });
  return { words: new Int32Array(memory.buffer), of, threadOf: (rank, line) => new ParkedRanks(memory, rank, n, line) };
}

function setOf(...members: number[]): RankSet {
  const set = noRanks();
  for (const rank of members) set[rank >> 5]! |= 1 << (rank & 31);
  return set;
}

function wakePipe(): { readonly pipe: WakePipe; readonly written: () => number } {
  const { libc, reason } = loadLibc();
  if (libc === undefined) throw new Error(reason);
  const { readEnd, writeEnd } = libc.pipe();
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

test('a rank and another thread of it park at the same time, and each is woken by the ranks that it waits for', () => {
  const { words, of, threadOf } = ranks(3);
  const thread = threadOf(0, of[0]!.takeLine());
  const [ofRank, ofThread] = [wakePipe(), wakePipe()];
  of[0]!.register(ofRank.pipe, setOf(1));
  thread.register(ofThread.pipe, setOf(1, 2));
  of[2]!.wake();
  expect([ofRank.written(), ofThread.written()]).toEqual([0, 1]);
  thread.register(ofThread.pipe, setOf(1, 2));
  of[1]!.wake();
  expect([ofRank.written(), ofThread.written(), words[COUNT]]).toEqual([1, 1, 0]);
});

test('a thread of a rank is woken by that rank, and the rank not by its thread', () => {
  const { of, threadOf } = ranks(2);
  const thread = threadOf(0, of[0]!.takeLine());
  const [ofRank, ofThread] = [wakePipe(), wakePipe()];
  of[0]!.register(ofRank.pipe, setOf(0, 1));
  thread.register(ofThread.pipe, setOf(0, 1));
  thread.wake();
  of[0]!.wake();
  expect([ofRank.written(), ofThread.written()]).toEqual([0, 1]);
  of[0]!.unregister();
});

test('threads without a line know that they have to poll; a line is free again after a thread that ended while it was parked', () => {
  const { words, of, threadOf } = ranks(2);
  const lines = Array.from({ length: MOST_THREADS }, (_, index) => of[index % 2]!.takeLine());
  const threads = lines.map((line, index) => threadOf(index % 2, line));
  const tooMany = threadOf(0, of[0]!.takeLine());
  tooMany.register(wakePipe().pipe, setOf(1));
  expect([new Set(lines).size, threads.every(({ canBeWoken }) => canBeWoken), tooMany.canBeWoken, words[COUNT]]).toEqual(
    [MOST_THREADS, true, false, 0], // prettier-ignore
  );
  threads[100]!.register(wakePipe().pipe, setOf(1));
  of[0]!.giveBack(lines[100]!);
  expect([of[1]!.takeLine(), words[COUNT]]).toEqual([lines[100], 0]);
});
