import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Assembler, general, vector } from '../../../../src/runtime/device/machine-code/assembler.js';

const hasDisassembler = spawnSync('objdump', ['--version']).status === 0;

const names = Object.keys(general) as (keyof typeof general)[];
const low = { rax: 'eax', rcx: 'ecx', rdx: 'edx', rsi: 'esi', rdi: 'edi', r8: 'r8d', r9: 'r9d', r10: 'r10d', r11: 'r11d' };
/** Pairs in which every register comes in both places. */
const pairs = names.map((a, i) => [a, names[(i + 4) % names.length]!] as const);
const vectors = [
  [0, 5, 10],
  [15, 0, 5],
  [7, 8, 15],
  [8, 15, 0],
] as const;
const displacements = [0, 127, -128];
const adding = ['vaddps', 'vaddpd', 'vpaddb', 'vpaddd', 'vpaddq'] as const;

/** Every instruction in Intel's words, as objdump writes it. */
function writeAll(code: Assembler): string[] {
  const text: string[] = [];
  const at = (displacement: number) =>
    displacement < 0 ? `-0x${(-displacement).toString(16)}` : `+0x${displacement.toString(16)}`;
  const start = code.here();
  for (const [a, b] of pairs) {
    const [x, y] = [general[a], general[b]];
    code.mov(x, y);
    code.add(x, y);
    code.cmp(x, y);
    code.addNumber(x, 128);
    code.addNumber(y, -70_000);
    text.push(`mov ${a},${b}`, `add ${a},${b}`, `cmp ${a},${b}`, `add ${a},0x80`, `add ${b},0xfffffffffffeee90`);
    for (const displacement of displacements) {
      code.movLow(x, { base: y, displacement });
      text.push(`mov ${low[a]},DWORD PTR [${b}${at(displacement)}]`);
      code.movLoad(x, { base: y, displacement });
      text.push(`mov ${a},QWORD PTR [${b}${at(displacement)}]`);
      for (const [v, w] of vectors) {
        const place = { base: y, displacement };
        code.vmovdquLoad(vector(v), place);
        code.vmovdquStore(place, vector(v));
        code.vcvtph2ps(vector(v), place);
        const memory = `XMMWORD PTR [${b}${at(displacement)}]`;
        text.push(`vmovdqu xmm${v},${memory}`, `vmovdqu ${memory},xmm${v}`, `vcvtph2ps ymm${v},${memory}`);
        code.vmovdquLoad(vector(v), place, true);
        code.vmovdquStore(place, vector(v), true);
        const wide = `YMMWORD PTR [${b}${at(displacement)}]`;
        code.vmovntdq(place, vector(v));
        text.push(`vmovdqu ymm${v},${wide}`, `vmovdqu ${wide},ymm${v}`, `vmovntdq ${wide},ymm${v}`);
        for (const adds of adding) {
          code[adds](vector(v), vector(w), place);
          text.push(`${adds} ymm${v},ymm${w},${wide}`);
        }
      }
    }
  }
  for (const [a, b, c] of vectors) {
    const [x, y, z] = [vector(a), vector(b), vector(c)];
    code.vcvtph2ps(x, y);
    code.vcvtps2ph(x, y);
    for (const adds of adding) code[adds](x, y, z);
    code.vcmpunordps(x, y, z);
    code.vblendvps(x, y, z, x);
    code.vpcmpeqd(x, y, z);
    code.vpsrld(x, y, 9);
    text.push(
      `vcvtph2ps ymm${a},xmm${b}`,
      `vcvtps2ph xmm${a},ymm${b},0x0`,
      ...adding.map((adds) => `${adds} ymm${a},ymm${b},ymm${c}`),
      `vcmpunordps ymm${a},ymm${b},ymm${c}`,
      `vblendvps ymm${a},ymm${b},ymm${c},ymm${a}`,
      `vpcmpeqd ymm${a},ymm${b},ymm${c}`,
      `vpsrld ymm${a},ymm${b},0x9`,
    );
  }
  code.jb(code.here());
  text.push(`jb 0x${(code.here() - 6).toString(16)}`);
  code.jb(start);
  code.sfence();
  code.vzeroupper();
  code.ret();
  return [...text, 'jb 0x0', 'sfence', 'vzeroupper', 'ret'];
}

test.skipIf(!hasDisassembler)(
  `a disassembler reads the assembled instructions${hasDisassembler ? '' : ' (skipped: there is no objdump)'}`,
  () => {
    const code = new Assembler();
    const expected = writeAll(code);
    const directory = mkdtempSync(join(tmpdir(), 'tccl-assembler-'));
    try {
      const path = join(directory, 'code');
      writeFileSync(path, code.code);
      const { stdout } = spawnSync(
        'objdump',
        ['-D', '-b', 'binary', '-m', 'i386:x86-64', '-M', 'intel', '--no-show-raw-insn', path],
        { encoding: 'utf8' },
      );
      const read = [...stdout.matchAll(/^ +[0-9a-f]+:\t(.*?) *$/gm)].map(([, instruction = '']) =>
        instruction.replace(/ +/, ' '),
      );
      expect(read).toEqual(expected);
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);

test('registers beyond the first eight are encoded in the prefixes', () => {
  const code = new Assembler();
  code.movLow(general.r8, { base: general.r9, displacement: 4 });
  code.vaddps(vector(8), vector(9), vector(10));
  expect(Buffer.from(code.code).toString('hex')).toBe('458b4104' + 'c4413458c2');
});
