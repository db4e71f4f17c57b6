import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { readExhibits } from '../../src/cli/log/read.js';
import { NcclLogReader } from '../../src/planner/log/job/read-log.js';
import { cliPath, start } from '../multi-process/cli.js';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-input-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const logs = join(import.meta.dirname, '../logs');
const log = readFileSync(join(logs, 'cases/m02-exception-of-one-rank/job.log'));

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** A tar archive with one file, as GNU tar and others write it. */
function tar(name: string, content: Buffer, type = '0'): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write('0000644\0', 100);
  header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  header.write('        ', 148);
  header.write(type, 156);
  header.write('ustar\x0000', 257);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

const verdict = /^Verdict: rank 3 ended by an exception of its own: PIL\.UnidentifiedImageError/;
/** A part of a bomb: 16 MiB of text in 16 KiB. */
const swelling = gzipSync(Buffer.alloc(2 ** 24, 'a'));

describe('tccl diagnose reads', () => {
  it.each(['job.tar.xz', 'job.tar.zst', 'job.tar.bz2', 'job.zip'])('%s', async (name) => {
    const packed = join(logs, 'packed', name);
    const { code, stdout, stderr } = await tccl(['diagnose', packed]);
    expect([code, stderr]).toEqual([1, '']);
    expect(stdout).toMatch(verdict);
    expect(stdout).toContain(`where  ${packed}: node1/job.log:3`);
  });

  it('archives within archives, long names, and the standard input', async () => {
    const longName = `${'folder/'.repeat(30)}job.log`;
    const archive = Buffer.concat([tar('././@LongLink', Buffer.from(`${longName}\0`), 'L'), tar('cut', log), Buffer.alloc(1024)]);
    const [twice, piped] = await Promise.all([
      tccl(['diagnose', file('outer.tgz', gzipSync(tar('inner.tar.gz', gzipSync(archive))))]),
      tccl(['diagnose', '-'], { input: log.toString() }),
    ]);
    expect(twice.stdout).toMatch(verdict);
    expect(twice.stdout).toContain(`inner.tar.gz: ${longName}:3`);
    expect(piped).toMatchObject({ code: 1, stdout: expect.stringContaining('where  standard input:3') as string });
  });

  it('UTF-16, as PowerShell writes it, with and without a mark', async () => {
    const wide = Buffer.from(log.toString().replaceAll('\n', '\r\n'), 'utf16le');
    const big = Buffer.from(wide).swap16();
    for (const [name, bytes] of [
      ['marked', Buffer.concat([Buffer.from([0xff, 0xfe]), wide])],
      ['plain', wide],
      ['big', Buffer.concat([Buffer.from([0xfe, 0xff]), big])],
    ] as const)
      expect((await tccl(['diagnose', file(name, bytes)])).stdout).toMatch(verdict);
  });

  it('what unpacks of a file that is cut, and says so', async () => {
    const noise = Array.from({ length: 3000 }, (_, line) => `step ${line} loss ${Math.sin(line)}\n`).join('');
    const packed = gzipSync(Buffer.concat([log, Buffer.from(noise)]));
    const cut = file('cut.gz', packed.subarray(0, packed.length - 2000));
    const { code, stdout } = await tccl(['diagnose', cut]);
    expect([code, stdout]).toEqual([1, expect.stringMatching(verdict)]);
    expect(stdout).toContain(`Not whole: ${cut}: it is cut: what unpacks is read\n`);
  });

  it('the other files of a zip where one is encrypted', async () => {
    const packed = readFileSync(join(logs, 'packed/encrypted.zip'));
    const cut = packed.subarray(0, packed.lastIndexOf('PK\u0001\u0002'));
    for (const archive of [file('encrypted.zip', packed), file('encrypted-cut.zip', cut)]) {
      const { code, stdout } = await tccl(['diagnose', archive]);
      expect([code, stdout]).toEqual([1, expect.stringMatching(verdict)]);
      expect(stdout).toContain(`Not read: ${archive}: secret.log: is encrypted: unpack it with its password`);
    }
  });

  it('a pipe that a process writes to, and refuses one without', async () => {
    const pipe = join(folder, 'pipe');
    await start('mkfifo', [pipe]).finished;
    const message = `tccl: ${pipe}: is a pipe to which no process writes; start its writer first, or pipe into -\n`;
    expect(await tccl(['diagnose', pipe])).toMatchObject({ code: 2, stderr: message });
    const words = `"${process.execPath}" "${cliPath}" diagnose <(cat "${file('piped.log', log)}")`;
    expect((await start('bash', ['-c', words]).finished).stdout).toMatch(verdict);
  });

  it('what is whole of a zip that is cut', async () => {
    const packed = readFileSync(join(logs, 'packed/job.zip'));
    const cut = file('cut.zip', packed.subarray(0, packed.lastIndexOf('PK\u0001\u0002')));
    const { code, stdout } = await tccl(['diagnose', cut]);
    expect([code, stdout]).toEqual([1, expect.stringMatching(verdict)]);
    const half = await tccl(['diagnose', file('half.zip', packed.subarray(0, packed.length / 2))]);
    expect(half.stdout).toContain('half.zip: node1/job.log: it is cut: what unpacks is read\n');
  });

  it('and refuses in plain words what unpacks to nothing', async () => {
    for (const [name, from] of [
      ['cut.bz2', 'job.tar.bz2'],
      ['cut.zst', 'job.tar.zst'],
    ] as const) {
      const packed = readFileSync(join(logs, 'packed', from));
      const cut = file(name, packed.subarray(0, packed.length / 2));
      expect(await tccl(['diagnose', cut])).toMatchObject({
        code: 2,
        stderr: `tccl: ${cut}: nothing of it could be unpacked: it is cut before the end of its first block; give it whole\n`,
      });
    }
  });

  it('a log with zeros where it was emptied while it was written', async () => {
    const { stdout } = await tccl(['diagnose', file('sparse.log', Buffer.concat([Buffer.alloc(3000), log, log]))]);
    expect(stdout).toMatch(verdict);
    const hole = Buffer.concat([Buffer.alloc(300_001), log]); // more than is looked at
    expect((await tccl(['diagnose', file('hole.log', hole)])).stdout).toMatch(verdict);
  });
});

describe('tccl diagnose says in one line each what it does not read', () => {
  it('and reads the rest of the folder', async () => {
    const incident = join(folder, 'incident');
    mkdirSync(join(incident, 'locked'), { recursive: true });
    cpSync(join(logs, 'cases/m02-exception-of-one-rank/job.log'), join(incident, 'job.log'));
    writeFileSync(join(incident, 'video.mp4'), Buffer.from(Array.from({ length: 4000 }, (_, at) => (at * 7919) % 256)));
    writeFileSync(join(incident, 'junk.json'), '{"a": ');
    const bomb = Buffer.concat(Array.from({ length: 10 }, () => swelling));
    writeFileSync(join(incident, 'bomb.tar'), Buffer.concat([tar('a.gz', bomb), tar('b.gz', swelling)]));
    writeFileSync(
      join(incident, 'bomb.xml'),
      '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaa"><!ENTITY b "&a;&a;">]><a>&b;</a>',
    );
    writeFileSync(join(incident, 'broken.zip'), 'PK\u0003\u0004 and nothing more');
    symlinkSync(incident, join(incident, 'loop'));
    symlinkSync('itself', join(incident, 'itself'));
    symlinkSync('/nowhere/rank0.log', join(incident, 'gone.log'));
    chmodSync(join(incident, 'locked'), 0);
    const [text, json] = await Promise.all([tccl(['diagnose', incident]), tccl(['diagnose', incident, '--json'])]);
    chmodSync(join(incident, 'locked'), 0o755);
    expect(text.code).toBe(1);
    expect(text.stdout).toMatch(verdict);
    expect(text.stdout).toContain('Read: 1 × text\n');
    const refusals = text.stdout.split('\n').filter((line) => line.startsWith('Not read: '));
    expect(refusals).toEqual([
      expect.stringMatching(/bomb\.tar: unpacks to more than 256 times its size: this is no log \(a zip bomb\?\)/),
      expect.stringMatching(/bomb\.xml: /),
      expect.stringMatching(/broken\.zip: is no zip archive that can be read: /),
      expect.stringMatching(/gone\.log: is a link to a file that does not exist/),
      expect.stringMatching(/itself: cannot be read: ELOOP/),
      expect.stringMatching(/junk\.json: is no JSON: /),
      ...(process.getuid?.() === 0 ? [] : [expect.stringMatching(/locked: cannot be read: /) as string]),
      expect.stringMatching(/video\.mp4: is no text \(a binary file\)/),
    ]);
    const { exhibits } = JSON.parse(json.stdout) as { exhibits: { file: string; refused?: string }[] };
    expect(exhibits.filter(({ refused }) => refused !== undefined)).toHaveLength(refusals.length);
  });

  it('and a bomb of zstd, and a window that takes gigabytes, without their memory', async () => {
    // A frame with a window of 1 MiB, and blocks that repeat one letter 128 Ki times each.
    const blocks = Buffer.alloc(4 * 8000);
    for (let at = 0; at < blocks.length; at += 4) blocks.writeUInt32LE(((0x61 << 24) | ((2 ** 17) << 3) | 2) >>> 0, at);
    const frame = (window: number) => Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, window]), blocks]);
    const bomb = file('bomb.zst', frame(10 << 3));
    const before = process.memoryUsage.rss();
    let most = 0;
    const watch = () => (most = Math.max(most, process.memoryUsage.rss()));
    const [exhibit] = await readExhibits(bomb, new NcclLogReader(), watch);
    watch();
    expect(exhibit?.refused).toContain('256 times its size');
    expect((most - before) / 2 ** 20).toBeLessThan(400);
    const { code, stderr } = await tccl(['diagnose', file('long.zst', frame(21 << 3))]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('with a window of 2048 MiB (zstd --long), more than 128: unpack'),
    ]);
  });

  it('and a missing path beside one that exists', async () => {
    const job = file('job.log', log);
    const { code, stdout } = await tccl(['diagnose', job, join(folder, 'nowhere')]);
    expect([code, stdout]).toEqual([1, expect.stringContaining('nowhere: there is no such file or folder\n')]);
  });

  it.skipIf(process.platform !== 'linux')('and does not read the rest of a binary file', async () => {
    const { code, stderr } = await tccl(['diagnose', '/dev/zero']); // has no end
    expect([code, stderr]).toEqual([2, 'tccl: /dev/zero: is no text (a binary file)\n']);
  });

  it.skipIf(process.platform !== 'linux')('and closes a file that it refuses before its end', async () => {
    let deep: Buffer = randomBytes(2 ** 20); // more than is read ahead
    for (let depth = 0; depth < 6; depth++) deep = gzipSync(deep);
    const path = file('deep.gz', deep);
    const isOpen = () =>
      readdirSync('/proc/self/fd').some((number) => {
        try {
          return readlinkSync(`/proc/self/fd/${number}`) === path;
        } catch {
          return false; // the one of this listing
        }
      });
    const [exhibit] = await readExhibits(path, new NcclLogReader(), () => undefined);
    expect(exhibit?.refused).toContain('packed more than 4 times');
    expect(isOpen()).toBe(false);
  });

  it('and exits with 2, also as JSON, where it can read nothing', async () => {
    for (const [name, content] of [
      ['junk.json', '{"a": '],
      ['other.xml', '<?xml version="1.0"?><html></html>'],
    ] as const) {
      const { code, stdout, stderr } = await tccl(['diagnose', file(name, content), '--json']);
      expect([code, stderr.split('\n')]).toEqual([2, [expect.stringContaining(name), '']]);
      expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'CONTENT', file: expect.stringContaining(name) as string } });
    }
  });

  it('and takes neither an empty file nor prose for a healthy job', async () => {
    for (const [name, content] of [
      ['empty.txt', ''],
      ['prose.txt', 'hello\nnothing about it here\n'],
    ] as const) {
      const { code, stdout } = await tccl(['diagnose', file(name, content), '--json']);
      expect([code, JSON.parse(stdout)]).toMatchObject([3, { outcome: 'undecided', verdict: { causes: [] } }]);
      expect((await tccl(['diagnose', file(name, content)])).stdout).toMatch(/^Undecided: /);
    }
  });

  it('and keeps no more of an endless line than counts', async () => {
    const endless = file('endless.log', Buffer.concat([Buffer.alloc(2 ** 25, 'x'), Buffer.from('\n'), log]));
    expect((await tccl(['diagnose', endless])).stdout).toMatch(verdict);
  });
});
