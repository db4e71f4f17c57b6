import { describe, expect, it } from 'vitest';
import { fitting, folded, tableLines } from '../../../src/cli/screen.js';

const table = {
  heading: ['communicator', 'ranks', 'launched', 'without a launch for'],
  rows: [['0xfa93daea854b060b', '2', '639 to 640', '2 s, ranks differ']],
  texts: [0],
  spare: [1],
  enough: 20,
};

describe('lines for narrow terminals', () => {
  it('leaves out spare columns, then folds the last one, then puts it below the others', () => {
    expect(tableLines(table, undefined)).toEqual([
      '  communicator        ranks    launched  without a launch for',
      '  0xfa93daea854b060b      2  639 to 640  2 s, ranks differ',
    ]);
    expect(tableLines(table, 60)).toEqual([
      '  communicator          launched  without a launch for',
      '  0xfa93daea854b060b  639 to 640  2 s, ranks differ',
    ]);
    expect(tableLines(table, 51)).toEqual([
      '  communicator          launched  without a launch',
      `${' '.repeat(34)}for`,
      '  0xfa93daea854b060b  639 to 640  2 s, ranks differ',
    ]);
    expect(tableLines(table, 40)).toEqual([
      '  communicator          launched',
      '    without a launch for',
      '  0xfa93daea854b060b  639 to 640',
      '    2 s, ranks differ',
    ]);
  });

  it('keeps a command in one line if it fits', () => {
    const line = '  on 10.0.0.1: `py-spy dump --pid 4001` shows it';
    expect(folded(line, 34)).toEqual(['  on 10.0.0.1:', '    `py-spy dump --pid 4001` shows', '    it']);
    expect(folded(line, 20)).toEqual(['  on 10.0.0.1:', '    `py-spy dump', '    --pid 4001`', '    shows it']);
  });

  it('says how many lines a low terminal lacks', () => {
    expect(fitting(['a', 'b', 'c'], 3, 80)).toEqual(['a', 'b', 'c']);
    expect(fitting(['a', 'b', 'c', 'd'], 3, 80)).toEqual(['a', 'b', '… 2 more lines on a higher terminal']);
    expect(fitting(['a', 'b'], 1, 20)).toEqual(['… 2 more lines on a ']);
  });
});
