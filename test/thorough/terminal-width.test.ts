import { existsSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { afterEach, describe, expect, test } from 'vitest';
import { RasServer } from '../commands/ras-server.js';
import { cliPath, fixture, start, startTccl, type Started } from '../multi-process/cli.js';

const missing = existsSync('/usr/bin/script') ? '' : ' (needs: script of util-linux)';

const servers: RasServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** A job of eight ranks, of which one lags, in three communicators. */
async function job(): Promise<string> {
  const ranks = Array.from({ length: 8 }, (_, rank) => ({ rank, counts: { AllReduce: rank === 5 ? 639 : 640 } }));
  const hashes = ['0xfa93daea854b060b', '0x1', '0x2'];
  const server = new RasServer({ version: '2.30.7', communicators: () => hashes.map((hash) => ({ hash, ranks })) });
  servers.push(server);
  return server.listen();
}

/** Starts a command on a terminal of a size; its name is the first line. */
function onTerminal(columns: number, args: readonly string[]): Started {
  const words = [process.execPath, cliPath, ...args].map((word) => `'${word}'`).join(' ');
  return start('/usr/bin/script', [
    '-qec',
    `stty cols ${columns} rows 60; tty; exec env -u NO_COLOR TERM=xterm ${words}`,
    '/dev/null',
  ]);
}

/** The lines that a terminal got, without controls. */
const linesOf = (output: string) => output.replaceAll(/\x1b\[[\d;]*[A-Za-z]/g, '').split(/\r*\n\r*/);
const widest = (lines: readonly string[]) => Math.max(...lines.map(({ length }) => length));

describe.skipIf(missing)(`tccl watch and tccl inspect on a terminal${missing}`, () => {
  test.each([60, 80, 140])('of %i columns: tccl watch shows all of its sentences', async (columns) => {
    const command = onTerminal(columns, ['watch', await job(), '--every', '1s', '--samples', '2', '--stuck-after', '1ms']);
    const lines = linesOf((await command.finished).stdout);
    expect(widest(lines)).toBeLessThanOrEqual(columns);
    const text = lines.join(' ').replaceAll(/ +/g, ' ');
    expect(text).toContain(
      '0 s rank 5 (10.0.0.1, pid 4005, GPU 5) has launched 639 AllReduces of communicator 0xfa93daea854b060b, others 640; ranks of 2 other communicators differ, too',
    );
    expect(text).toContain('0xfa93daea854b060b');
    expect(text).toMatch(/639 to 640 .*ranks differ/);
    expect(/communicator +ranks +launched/.test(text)).toBe(columns > 60);
  });

  test('draws again when the terminal becomes narrower', async () => {
    const command = onTerminal(140, ['watch', await job(), '--every', '20s', '--stuck-after', '1ms']);
    const [terminal = ''] = /\/dev\/pts\/\d+/.exec(await command.shown(/communicator +ranks +launched[^]*differ/)) ?? [];
    execFileSync('stty', ['-F', terminal, 'cols', '60']);
    const output = await command.shown(/communicator +launched[^]*differ/);
    const again = linesOf(output.slice(output.lastIndexOf('\u001b[J')));
    command.process.kill('SIGTERM');
    await command.finished;
    expect(widest(again)).toBeLessThanOrEqual(60);
    expect(again.join(' ')).toContain('0xfa93daea854b060b');
  });

  test('of 60, 80 and 140 columns: tccl inspect drops columns, and folds the call that a rank is in', async () => {
    const ranks = startTccl(['run', '-n', '3', '--no-prefix', '--', process.execPath, fixture('hangs.mjs'), 'late']);
    try {
      await ranks.shown(/(.*"pid".*\s+){3}/);
      const wide = await inspected(140, ranks);
      expect(wide.text).toMatch(/rank +process +state +calls +calls\/s +memory +in/);
      const middle = await inspected(80, ranks);
      expect(middle.text).toMatch(/rank +process +state +calls +in/);
      const narrow = await inspected(60, ranks);
      expect(narrow.text).toMatch(/rank +process +state +in/);
      for (const { columns, lines, text } of [wide, middle, narrow]) {
        expect(widest(lines)).toBeLessThanOrEqual(columns);
        const sentences = text.replaceAll(/\s+/g, ' ');
        expect(sentences).toMatch(/rank 1 \(process \d+ on \S+\) is elsewhere in its program and idle/);
        expect(sentences).toMatch(/0 \d+ sleeps \d+ % .*allReduce of 4 int32 \(sum, direct\), call \d+,? ?/);
      }
    } finally {
      ranks.process.kill('SIGTERM');
      await ranks.finished;
    }
  });
});

async function inspected(columns: number, { process: { pid } }: Started) {
  for (;;) {
    const { stdout } = await onTerminal(columns, ['inspect', String(pid), '--stuck-after', '1s']).finished;
    const lines = linesOf(stdout);
    const text = lines.join('\n');
    if (text.includes('stuck')) return { columns, lines, text: text.replaceAll(/ +/g, ' ') };
  }
}

describe.skipIf(missing)(`help on a terminal${missing}`, () => {
  test.each([60, 80, 140])('of %i columns breaks no word', async (columns) => {
    for (const command of [[], ['run'], ['perf'], ['log']]) {
      const lines = linesOf((await onTerminal(columns, [...command, '--help']).finished).stdout);
      // The examples are for copying.
      const described = lines.slice(1, lines.indexOf('Examples:'));
      expect(described.length).toBeGreaterThan(10);
      for (const line of described) if (/ /.test(line.trim())) expect(line.length, line).toBeLessThanOrEqual(columns);
    }
  });
});
