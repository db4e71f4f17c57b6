import { describe, expect, it } from 'vitest';
import { type ColourName, colours } from '../../../src/view/draw/palette.js';

type Three = readonly [number, number, number];

/** Colours as they are seen, on linear RGB: G. M. Machado et al., 2009, severity 1. */
const visions: Readonly<Record<string, readonly [Three, Three, Three]>> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** Colours that stand side by side. */
const groups: Readonly<Record<string, readonly ColourName[]>> = {
  'loads of links': ['load0', 'load1', 'load2', 'load3', 'load4', 'load5', 'full'],
  algorithms: ['Tree', 'Ring', 'NVLS', 'NVLSTree', 'CollNetDirect', 'CollNetChain', 'PAT', 'Symmetric', 'CopyEngines'],
  'lines of a chart': ['line0', 'line1', 'line2', 'line3', 'line4', 'line5', 'line6', 'line7'],
  'types of paths': ['LOC', 'NVL', 'NVB', 'C2C', 'PIX', 'PXB', 'P2C', 'PXN', 'PHB', 'SYS', 'NET', 'DIS'],
  'links and transports': ['nvlink', 'c2c', 'pci', 'cpuLink', 'net', 'shared', 'bad'],
  'ranks of an incident': ['DIS', 'PHB', 'paper', 'gpuFill'],
};

/** Distance in OKLab at which two areas are told apart with ease; 0.02 is about what one sees at all. */
const LEAST_DISTANCE = 0.05;

describe('the colours', () => {
  const cases = Object.keys(groups).flatMap((group) =>
    Object.keys(visions).flatMap((vision) => (['light', 'dark'] as const).map((theme) => [group, vision, theme] as const)),
  );

  it.each(cases)('of %s are told apart with %s vision, on %s', (group, vision, theme) => {
    const seen = (groups[group] ?? []).map((name) => [name, seenBy(vision, colours[name][theme === 'light' ? 0 : 1])] as const);
    const near = seen.flatMap(([a, first], index) =>
      seen.slice(index + 1).flatMap(([b, second]) => {
        const distance = Math.hypot(first[0] - second[0], first[1] - second[1], first[2] - second[2]);
        return distance < LEAST_DISTANCE ? [`${a} ${b} ${distance.toFixed(3)}`] : [];
      }),
    );
    expect(near).toEqual([]);
  });
});

/** A colour `#rrggbb` as a vision has it, in OKLab (B. Ottosson, 2020). */
function seenBy(vision: string, hex: string): Three {
  const linear = [1, 3, 5].map((at) => {
    const part = parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const times = (rows: readonly Three[], values: readonly number[]) =>
    rows.map((row) => row.reduce((sum, factor, index) => sum + factor * (values[index] ?? 0), 0));
  const seen = times(visions[vision] ?? [], linear).map((part) => Math.min(1, Math.max(0, part)));
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    seen,
  ).map(Math.cbrt);
  const [lightness = 0, a = 0, b = 0] = times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones,
  );
  return [lightness, a, b];
}
