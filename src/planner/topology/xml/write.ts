import type { XmlElement } from './tree.js';

/**
 * The text of a tree in the form of NCCL's dump: no declaration, two spaces for each level, attributes in the order in which they
 * were set. `&`, `<` and `"`, which NCCL's values never contain, are escaped.
 */
export function writeXml(root: XmlElement): string {
  const lines: string[] = [];
  write(root, '', lines);
  return lines.join('');
}

function write(element: XmlElement, indent: string, lines: string[]): void {
  let tag = `${indent}<${element.name}`;
  for (const [key, value] of element.attributes) tag += ` ${key}="${escape(value)}"`;
  if (element.children.length === 0) {
    lines.push(`${tag}/>\n`);
    return;
  }
  lines.push(`${tag}>\n`);
  for (const child of element.children) write(child, `${indent}  `, lines);
  lines.push(`${indent}</${element.name}>\n`);
}

function escape(value: string): string {
  if (!/[&<"]/.test(value)) return value;
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

/** An integer as `xmlSetAttrLong` writes it (C's `%#lx`): 0 is "0", everything else has its 0x. */
export function formatHex(value: bigint | number): string {
  const unsigned = BigInt.asUintN(64, BigInt(value));
  return unsigned === 0n ? '0' : `0x${unsigned.toString(16)}`;
}

/** A number as `xmlSetAttrFloat` writes it (C's `%g`): six significant digits, no trailing zeros. */
export function formatFloat(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const [mantissa = '', exponentText = '0'] = exponential(value).split('e');
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 6) {
    const sign = exponent < 0 ? '-' : '+';
    return `${withoutTrailingZeros(mantissa)}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  return withoutTrailingZeros(Number(`${mantissa}e${exponent}`).toFixed(5 - exponent));
}

/** Six significant digits; where JavaScript rounds a tie away from zero, C rounds it to the even digit. */
function exponential(value: number): string {
  const rounded = value.toExponential(5);
  // Twenty further digits detect a tie exactly: a double with a seventh digit of 5 and nothing after it.
  const exact = value.toExponential(25);
  const tie = /^-?\d\.(\d{5})50{19}e/.exec(exact);
  const lastKept = Number(tie?.[1]?.at(-1) ?? 1);
  if (tie === null || lastKept % 2 === 1) return rounded;
  const end = exact.indexOf('.') + 6;
  return exact.slice(0, end) + exact.slice(exact.indexOf('e'));
}

function withoutTrailingZeros(digits: string): string {
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
}
