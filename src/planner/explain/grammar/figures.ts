import type { Words } from './phrases.js';
import type { Measured } from './question.js';

/** A bandwidth in a question, GB/s, with its place. */
export interface Rate {
  readonly value: number;
  readonly at: number;
  /** Part of a figure before it, for `half of it on two nodes`. */
  readonly isPart?: true;
}

/** Words before a figure that is promised or expected, not measured. */
const promisedBefore =
  /(?:\b(?:instead of|rather than|(?:reduc|lower|decreas|degrad)\w*(?: \w+){0,4} from|gap to|nv-?\s?links?(?: bandwidth| speed)? (?:has|have|of|at|gives?|offers?|provides?|carr(?:y|ies))|compared (?:to|with)|against|out of|and not|theoretical\w*(?: \w+){0,3}|expect\w*(?: \w+){0,2}|nominal(?: \w+)?|spec\w*(?: \w+){0,2}|line rate|should (?:be|reach|get)|supposed to \w+|advertised|claim\w*(?: \w+){0,2}|up to)|\d\s?(?:[gmt]b(?:\/s|ps)? )?of)(?: of| is| are| be| the| about| around| at|:)*\s*~?$/i;
/** Programs whose figures are no bandwidth of a call. */
const ofOtherTool =
  /\b(?:ib_(?:write|read|send)_bw|perftest|iperf\d?|p2pbandwidthlatencytest|nvbandwidth|nvidia-smi|lstopo)\b[^.;,?]{0,40}$/i;
/** Largest difference of two figures that are the same in other units: `9.84 GB/s (about 80 Gbps)`. */
const SAME = 0.06;
/** Words behind it: `25 GB/s NVLink`. */
const promisedBehind = /^\s*(?:nv-?\s?links?|pci-?e|theoretical|nominal|line rate|spec\b|advertised|link speed)/i;
const PARTS: Readonly<Record<string, number>> = { half: 0.5, twice: 2, double: 2, 'a third': 1 / 3, 'a quarter': 1 / 4 };

/** GB/s by unit. Bits are told from bytes by the letter b. */
export function takeRates(words: Words): {
  readonly rates: readonly Rate[];
  readonly promised: readonly number[];
  readonly ratio: number | undefined;
} {
  const rates: Rate[] = [];
  const promised: number[] = [];
  const RATE =
    '~?(\\d+(?:[.,]\\d+)?)\\s?([kmgt])(i?)(b|bytes?|bits?)?\\s?(?:\\/\\s?s(?:ec(?:ond)?)?|ps|\\sper\\s(?:second|sec|s)|p)(?![\\w])';
  const text = words.written;
  // `72 of 100 GB/s`, `150 vs 190 GB/s`, `Tree 150, Ring 190 GB/s`: the unit stands once.
  words.take(
    new RegExp(
      `(?<![\\w.#-])(\\d{1,4}(?:\\.\\d+)?)(?=\\s*(?:,|/|and|vs\\.?|versus|to|or|(?:out )?of|->|→)\\s*(?:(?!\\d)[a-z]+\\s+){0,2}\\d+(?:\\.\\d+)?\\s?gb(?:/s|ps)(?![\\w/]))`,
    ),
    ({ 0: digits, index }) => rates.push({ value: Number(digits), at: index }) > 0,
    'figure',
  );
  words.take(
    new RegExp(`(?<![\\w.])${RATE}`),
    ({ 0: whole, 1: digits = '', 2: prefix = '', 3: binary, 4: unit = 'b', index }) => {
      const isBits = /bits?$/i.test(unit) || (unit === 'b' && /[kmgt]i?b/i.test(whole)) || /[KMGT]bps|[kmgt]bps\b/.test(whole);
      const isBytes = unit.startsWith('B') || /bytes?$/i.test(unit);
      const base = binary === '' ? 1000 : 1024;
      const exponent = { k: 1, m: 2, g: 3, t: 4 }[prefix.toLowerCase()] ?? 3;
      const value = (Number(digits.replace(',', '.')) * base ** exponent) / 1e9;
      const gbps = isBits && !isBytes ? value / 8 : value;
      const before = text.slice(0, index);
      if (/\([^()]*$/.test(before) && rates.some((rate) => Math.abs(rate.value - gbps) <= SAME * gbps)) return true;
      const isPromised =
        promisedBefore.test(before) || ofOtherTool.test(before) || promisedBehind.test(text.slice(index + whole.length));
      if (isPromised) promised.push(gbps);
      else rates.push({ value: gbps, at: index });
      words.mention(isPromised ? 'nominal' : 'figure', whole);
      return true;
    },
  );
  words.take(
    /\b(?:reach|exceed|achieve|get)(?:s|ed|ing)? (?:the )?(\d{2,4})\+?(?=\s*(?:[.,;?!]|$))/,
    ([, digits]) => promised.push(Number(digits)) > 0,
    'nominal',
  );
  // Bits without a time are a speed: `180 Gb`. Sizes are written in bytes.
  words.take(
    /(?<![\w.])(\d+(?:\.\d+)?)\s?gbi?t?s?(?![\w/])/,
    ([whole, digits]) => /Gbi?t?s?$/.test(whole) && promised.push(Number(digits) / 8) > 0,
    'nominal',
  );
  // `ours is 830`: a bandwidth without its unit, at the end of a sentence.
  if (rates.length === 0)
    words.take(
      /\b(?:ours|mine|(?:we|i) (?:only |just )?(?:get|got|see|reach|measure|have)|(?:busbw|bandwidth) (?:is|of))(?: is| are)?(?: only| about| around| just)? (\d{2,4}(?:\.\d+)?)\+?(?=\s*(?:[.,;?!]|$))/i,
      ({ 1: digits, index }) => rates.push({ value: Number(digits), at: index }) > 0,
      'figure',
    );
  // A promise alone is what is asked about.
  if (rates.length === 0 && promised.length > 0) rates.push({ value: promised.shift() ?? 0, at: 0 });
  const [first] = rates;
  if (rates.length === 1 && first !== undefined)
    for (const { 0: word, index } of text.matchAll(/\b(?:half|twice|double|a third|a quarter)\b/gi))
      if (index > first.at) rates.push({ value: first.value * (PARTS[word.toLowerCase()] ?? 1), at: index, isPart: true });
  let ratio: number | undefined;
  words.take(/(?<![\w.])(\d{1,2})\s?:\s?1\b/, ([, digits]) => {
    ratio = Number(digits);
    return true;
  });
  return { rates: rates.sort((a, b) => a.at - b.at), promised, ratio };
}

export function takeTimes(words: Words): Measured[] {
  const found: Measured[] = [];
  words.take(
    /(?<![\w.])~?(\d+(?:\.\d+)?)\s?(us|µs|μs|usec|micro ?seconds?|ms|msec|milli ?seconds?|s|sec|secs|seconds?)(?![\w/])/,
    ([, digits = '', unit = '']) => {
      const lower = unit.toLowerCase();
      const scale = /^(?:us|µ|μ|micro)/.test(lower) ? 1 : /^m/.test(lower) ? 1e3 : 1e6;
      found.push({ kind: 'time', value: Number(digits) * scale });
      return true;
    },
    'figure',
  );
  return found;
}

const prefixes: Readonly<Record<string, number>> = { k: 10, m: 20, g: 30, t: 40 };

/** Sizes with a unit, or numbers of elements; `70B` of a model's parameters is neither. */
export function takeSizes(words: Words): number[] {
  const sizes: number[] = [];
  // Parameters of a model: a size only with their type, `7B bf16 gradients`, `7B gradients in bf16`.
  const TYPE = '(bf16|fp16|float16|half|fp32|float32|fp8)';
  const NOUN = '(?:grad(?:ient)?s?|param(?:eter)?s?|weights?|model)';
  words.take(
    new RegExp(
      `(?<![\\w.])(\\d+(?:\\.\\d+)?)\\s?([bm])\\s(?:${TYPE}\\s${NOUN}|(?:${NOUN}\\s?)+(?:in|as|at|of|with)\\s${TYPE})\\b`,
    ),
    ([, digits = '', prefix = '', before, behind = '']) => {
      const type = before ?? behind;
      const bytes = /32/.test(type) ? 4 : type === 'fp8' ? 1 : 2;
      sizes.push(Math.floor(Number(digits) * (prefix.toLowerCase() === 'b' ? 1e9 : 1e6) * bytes));
      return true;
    },
    'size',
  );
  words.take(
    /(?<![\w.])\d+(?:\.\d+)?\s?[bm]\s?(?:-?\s?(?:param(?:eter)?s?|grad(?:ient)?s?|weights?|model|llama|llm))/,
    () => true,
    'word',
  );
  words.take(
    /(?<![\w.])(\d+(?:\.\d+)?)\s?(k|m|g|million|billion)?\s?(?:(?:float(?:32|s)?|fp32|bf16|fp16|half|float16|double)\s?)?(elements|floats|numbers|values|entries)(?!\w)/,
    ([text, digits = '', prefix = '']) => {
      const scale = { k: 1e3, m: 1e6, g: 1e9, million: 1e6, billion: 1e9 }[prefix.toLowerCase()] ?? 1;
      sizes.push(Math.floor(Number(digits) * scale) * (/16|half/i.test(text) ? 2 : /double/i.test(text) ? 8 : 4));
      return true;
    },
    'size',
  );
  words.take(
    /(?<![\w.])(\d+(?:\.\d+)?)\s?-?(?:([kmgt])i?(?:b|bytes?)?|bytes?|b)(?![\w/])/,
    ([, digits = '', prefix]) => {
      sizes.push(Math.floor(Number(digits) * 2 ** (prefix === undefined ? 0 : (prefixes[prefix.toLowerCase()] ?? 0))));
      return true;
    },
    'size',
  );
  return sizes.filter((bytes) => Number.isSafeInteger(bytes) && bytes > 0);
}
