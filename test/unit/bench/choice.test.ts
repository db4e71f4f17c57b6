import { expect, test } from 'vitest';
import { judge } from '../../../bench/lib/choice.mjs';

const cell = { choice: 'reduce', ranks: 4, size: 1024 };
const direct = { algorithm: 'direct', protocol: 'LL' };
const tree = { algorithm: 'tree', protocol: 'Simple' };

test('the fastest round counts, of chosen and of forced algorithms', () => {
  const judged = judge([
    { machine: {} },
    { ...cell, ...direct, chosen: true, us: 6 },
    { ...cell, ...direct, chosen: false, us: 7 },
    { ...cell, ...tree, chosen: false, us: 4 },
    { ...cell, ...direct, chosen: true, us: 5 },
    { ...cell, ...direct, chosen: false, us: 8 },
    { ...cell, ...tree, chosen: false, us: 9 },
  ]);
  expect(judged).toEqual([
    { kind: 'reduce', ranks: 4, size: 1024, chosen: { ...direct, us: 5 }, best: { ...tree, us: 4 }, ratio: 1.25, same: false },
  ]);
});

test('where the chosen algorithm is the best one, both have the same time', () => {
  const lines = [
    { ...cell, ...direct, chosen: true, us: 6 },
    { ...cell, ...direct, chosen: false, us: 4 },
    { ...cell, ...tree, chosen: false, us: 5 },
  ];
  expect(judge(lines)).toMatchObject([{ same: true, ratio: 1.5 }]);
  expect(judge(lines.map((line) => (line.chosen ? { ...line, protocol: 'Simple' } : line)))).toMatchObject([{ same: false }]);
});
