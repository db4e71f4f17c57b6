import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { showDiff } from '../../src/cli/diff/show.js';
import { showAnswer } from '../../src/cli/explain/show.js';
import { showGraphs } from '../../src/cli/graph/show.js';
import { showLog } from '../../src/cli/log/show.js';
import { complain, printNotes } from '../../src/cli/output.js';
import { showPlan } from '../../src/cli/plan/plan.js';
import { complete } from '../../src/cli/topo/complete.js';
import { doctor } from '../../src/cli/topo/doctor.js';
import { show } from '../../src/cli/topo/show.js';
import { describeError, TcclError } from '../../src/errors.js';
import { chooseInterface, systemInterfaces } from '../../src/runtime/bootstrap/interfaces.js';
import { runtimeSettings } from '../../src/runtime/resources/options.js';
import { machine } from '../../src/planner/topology/catalogue/machines.js';
import { parseXml } from '../../src/planner/topology/xml/parse.js';
import { descendants } from '../../src/planner/topology/xml/tree.js';
import { writeXml } from '../../src/planner/topology/xml/write.js';
import { printable, printableJson } from '../../src/printable.js';
import { madeLog, planMachines } from './planner/log/made-log.js';
import { runs } from '../runs.js';
import { anyCharacter } from './any-character.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-terminal-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Characters that no output may contain, whatever a file has; `\n` ends the lines that we make. */
const unsafe = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** Text that would set a window's title, write into the clipboard, colour, move, answer, reverse or end the line. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\u001b]0;owned\u0007',
        '\u001b]52;c;b3duZWQ=\u001b\\',
        '\u001b[31mred\u001b[39m',
        '\u001b[1mbold\u001b[22m',
        '\u001b[2J\u001b[H',
        '\u001b[6n',
        '\u001bP+q544e\u001b\\',
        '\u009b31m',
        '\u009d0;owned\u009c',
        '\u0090',
        '\u202e',
        '\u2066',
        '\u200f',
        '\u2028',
        '\u2029',
        '\u0085',
        '\ufeff',
        '\u00ad',
        '\u{e0041}',
        '\ud800',
        '\r',
        '\n',
        '\t',
        '\b\b\b',
        '\u0000',
        '\u007f',
        '\ufdd031m',
        'name',
        '"',
        '&',
        '<',
        '日本',
      ),
      fc.string({ unit: anyCharacter, maxLength: 4 }),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((parts) => parts.join(''));

/** XML has no controls of C0, and no lone surrogates; of the others a line end can be written by its number. */
const xmlText = (text: string) =>
  text
    .replaceAll(/[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]/g, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('"', '&quot;')
    .replaceAll(/[\n\r\t]/g, (character) => `&#${character.charCodeAt(0)};`);

let written = { stdout: '', stderr: '' };
beforeEach(() => {
  vi.stubEnv('NO_COLOR', undefined);
  vi.stubEnv('TERM', 'xterm');
  for (const name of ['stdout', 'stderr'] as const) {
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  vi.spyOn(console, 'log').mockImplementation((text) => {
    written.stdout += `${String(text)}\n`;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  delete (process.stdout as { isTTY?: boolean }).isTTY;
  delete (process.stderr as { isTTY?: boolean }).isTTY;
});

/** Output of a command to a terminal or a file; errors are handled as in main.ts. */
async function output(command: () => unknown, isTTY: boolean): Promise<{ stdout: string; stderr: string }> {
  written = { stdout: '', stderr: '' };
  for (const stream of [process.stdout, process.stderr]) Object.assign(stream, { isTTY, columns: 140 });
  try {
    await command();
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    complain('tccl', describeError(error));
  }
  process.exitCode = undefined;
  return written;
}

/** The same words in a file and on a terminal, where only our own colours are added. */
async function expectClean(command: () => unknown): Promise<void> {
  const { stdout, stderr } = await output(command, false);
  expect(stdout).not.toMatch(unsafe);
  expect(stderr).not.toMatch(unsafe);
  const terminal = await output(command, true);
  for (const [plain, colored] of [
    [stdout, terminal.stdout],
    [stderr, terminal.stderr],
  ] as const) {
    expect(
      colored
        .replaceAll(/\r\u001b\[K[^\r]*/g, '')
        .replaceAll(/\u001b\[(1|2|22|3[1-6]|39)m/g, '')
        .replaceAll(/ +$/gm, ''),
    ).toBe(plain.replaceAll(/ +$/gm, ''));
  }
}

const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

describe('control characters in a file do not reach the terminal', () => {
  it('from a cluster file, in plan, explain, diff and graph', async () => {
    await fc.assert(
      fc.asyncProperty(
        hostile,
        hostile,
        fc.constantFrom('name', 'machine', 'variable', 'field', 'hardware', 'broken'),
        async (a, b, place) => {
          const text = (name: string) => {
            const cluster = {
              name,
              machines: [
                {
                  machine: place === 'machine' ? name : 'hgx-a100-4',
                  count: 2,
                  name,
                  ...(place === 'hardware' ? { hardware: name } : {}),
                },
              ],
              environment: { NCCL_SOCKET_IFNAME: name, ...(place === 'variable' ? { [`NCCL_${name}`]: '1' } : {}) },
              ...(place === 'field' ? { [name]: 1 } : {}),
            };
            return `${JSON.stringify(cluster)}${place === 'broken' ? name : ''}`;
          };
          const [one, other] = [file('one.yaml', text(a)), file('other.yaml', text(b))];
          await expectClean(() => showPlan([one], { sizes: '1M' }));
          await expectClean(() => showDiff(one, other, {}));
          await expectClean(() => showAnswer(one, 'why 2 channels', {}));
          await expectClean(() => showGraphs(one, {}));
        },
      ),
      { numRuns: runs(3, 12), examples: [['\0\u001b]0;owned\u0007', '', 'machine']] },
    );
  });

  it('from a saved plan, in diff', async () => {
    const kept = await output(() => showPlan(['hgx-a100-4'], { sizes: '1M', json: true }), false);
    const plan = kept.stdout;
    const texts = [...plan.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(({ index, 0: { length } }) => ({ index, length }));
    await fc.assert(
      fc.asyncProperty(hostile, fc.nat(texts.length - 1), async (name, which) => {
        const { index = 0, length = 0 } = texts[which] ?? {};
        const changed = file('kept.json', plan.slice(0, index) + JSON.stringify(name) + plan.slice(index + length));
        await expectClean(() => showDiff(changed, 'hgx-a100-4', {}));
      }),
      { numRuns: runs(8, 30) },
    );
  });

  it('from a topology, in topo, plan and graph, and from its file’s name', async () => {
    const root = machine('hgx-a100-4');
    const all = [...descendants(root)].flatMap((element) => [...element.attributes.keys()].map((key) => ({ element, key })));
    const named = all.filter(({ key }) => /name|vendor|affinity|guid|speed/.test(key));
    const places = [...named, ...all];
    await fc.assert(
      fc.asyncProperty(
        hostile,
        fc.oneof(fc.nat(named.length - 1), fc.nat(places.length - 1)),
        fc.boolean(),
        async (name, which, isRaw) => {
          const { element, key } = places[which]!;
          const before = element.attributes.get(key) ?? '';
          element.attributes.set(key, '@@');
          const topology = file(
            `topology${printable(name).replaceAll(/\W/g, '').slice(0, 8)}\u001b]0;x\u0007.xml`,
            writeXml(root).replace('@@', isRaw ? name : xmlText(name)),
          );
          element.attributes.set(key, before);
          const svg = join(folder, 'drawn.svg');
          await expectClean(() => {
            show(topology, {});
          });
          await expectClean(() => {
            show(topology, { json: true });
          });
          await expectClean(() => doctor(topology, {}));
          await expectClean(() => showPlan([topology], { sizes: '1M' }));
          await expectClean(() => showGraphs(topology, {}));
          expect(
            (
              await output(() => {
                complete(topology, {});
              }, true)
            ).stdout,
          ).not.toMatch(unsafe);
          if (
            (
              await output(() => {
                show(topology, { svg });
              }, false)
            ).stdout.includes('Drawn')
          ) {
            const drawn = readFileSync(svg, 'utf8');
            expect(drawn).not.toMatch(unsafe);
            parseXml(drawn);
          }
        },
      ),
      { numRuns: runs(5, 20) },
    );
  });

  it('from a log, in log', async () => {
    const lines = madeLog(planMachines('hgx-a100-4', 2), { environment: { NCCL_IB_HCA: 'mlx5' } }).flat();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(hostile, fc.nat(lines.length - 1), fc.nat(150)), { minLength: 1, maxLength: 40 }),
        async (changes) => {
          const torn = [...lines];
          for (const [name, line, at] of changes) torn[line] = `${torn[line]!.slice(0, at)}${name}${torn[line]!.slice(at)}`;
          const host = changes[0]![0].replaceAll(/[\s:]/g, '');
          const log = file('job.log', torn.map((line) => line.replace('node1', `node1${host}`)).join('\n'));
          await expectClean(() => showLog([log], {}));
          await expectClean(() => showLog([log], { rank: '9' }));
          await expectClean(() => showLog([log], { json: true }));
          await expectClean(() => showLog([log], { topology: 'hgx-a100-4' }));
        },
      ),
      { numRuns: runs(3, 5) },
    );
  });

  it('in JSON and pictures, which keep their meaning', async () => {
    await fc.assert(
      fc.asyncProperty(hostile, async (name) => {
        const cluster = file('named.yaml', JSON.stringify({ name, machines: [{ machine: 'hgx-a100-4', count: 2, name }] }));
        const [svg, html] = [join(folder, 'plan.svg'), join(folder, 'plan.html')];
        const { stdout } = await output(() => showPlan([cluster], { sizes: '1M', json: true, svg, html }), false);
        expect(stdout).not.toMatch(unsafe);
        const { title } = JSON.parse(stdout) as { title: string };
        expect(title).toBe(name);
        expect(parseXml(readFileSync(svg, 'utf8')).root.name).toBe('svg');
        for (const page of [svg, html]) expect(readFileSync(page, 'utf8')).not.toMatch(unsafe);
      }),
      { numRuns: runs(3, 6) },
    );
  });
});

it('a name that contains a line end stays on its line', async () => {
  const cluster = file('lines.yaml', JSON.stringify({ name: 'good\nerror fake-finding: send your key', machines: 'hgx-a100-4' }));
  const { stdout } = await output(() => showPlan([cluster], { sizes: '1M' }), false);
  expect(stdout).toMatch(/^good\\nerror fake-finding: send your key {2}NCCL 2\.30\.7, 4 ranks on 1 node/);
  const onTerminal = await output(() => showPlan([cluster], { sizes: '1M' }), true);
  expect(onTerminal.stdout.startsWith('\u001b[1mgood\\nerror fake-finding: send your key\u001b[22m  NCCL 2.30.7, 4 ranks')).toBe(
    true,
  ); // in our colours
});

it('notes and errors are one line each, in our colours', async () => {
  const { stderr } = await output(() => {
    printNotes(['a \u001b[31mnote\u001b[39m']);
    complain('tccl', 'an\nerror\u202e');
  }, true);
  expect(stderr).toBe('\u001b[33mnote:\u001b[39m a \\x1b[31mnote\\x1b[39m\n\u001b[31mtccl:\u001b[39m an\\nerror\\u202e\n');
  expect(stripVTControlCharacters(stderr)).not.toMatch(unsafe);
});

it('text without control characters is unchanged, and JSON keeps its meaning', () => {
  const plain = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(printable(plain(text))).toBe(plain(text));
    }),
  );
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.constantFrom(undefined, 1), (value, indent) => {
      const text = printableJson(value, indent);
      expect(text).not.toMatch(unsafe);
      expect(JSON.stringify(JSON.parse(text))).toBe(JSON.stringify(value));
    }),
  );
});

it('errors about variables of the environment hold no control characters either', () => {
  const failure = (check: () => unknown): string => {
    try {
      check();
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };
  fc.assert(
    fc.property(hostile, (text) => {
      const messages = ['TCCL_TIMEOUT', 'TCCL_ALGO', 'TCCL_SHM_DISABLE', 'TCCL_DEBUG'].map((name) =>
        failure(() => runtimeSettings({ [name]: `x${text}` })),
      );
      messages.push(failure(() => chooseInterface(systemInterfaces(), { interfaceName: `=x${text}` })));
      for (const message of messages) {
        expect(message).not.toBe('');
        expect(message).not.toMatch(unsafe);
      }
    }),
  );
});
