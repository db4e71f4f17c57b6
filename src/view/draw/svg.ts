import { escape } from './markup.js';
import { type ColourName, colours, FONT, type Look, styleOf } from './palette.js';
import type { Mark, Picture } from './picture.js';

/** A picture as a self-contained SVG file, for light and dark backgrounds. */
export function svgFile(picture: Picture): string {
  const { width, height, title } = picture;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" class="tccl">`,
    `<title>${escape(title)}</title>`,
    `<style>${pictureStyle([picture])}</style>`,
    '<rect width="100%" height="100%" class="t-paper"/>',
    ...picture.marks.map(svgMark),
    '</svg>',
    '',
  ].join('\n');
}

/** A picture as an element of a page whose style sheet has its {@link pictureStyle}; as wide as its place, if not much wider. */
export function svgElement({ width, height, title, marks }: Picture): string {
  return `<svg viewBox="0 0 ${width} ${height}" role="img" class="tccl" style="max-width:${Math.round(1.25 * width)}px" aria-label="${escape(title)}">${marks.map(svgMark).join('')}</svg>`;
}

/** Style sheet of pictures: the looks and colours that they use. */
export function pictureStyle(pictures: readonly Picture[]): string {
  const marks = pictures.flatMap(({ marks: all }) => all);
  const usedLooks = new Set<Look>(['paper', ...marks.map(({ look }) => look)]);
  const overrides = new Set(marks.flatMap(({ fill, stroke }) => [...(fill ? [fill] : []), ...(stroke ? [stroke] : [])]));
  const ofLooks = [...usedLooks].flatMap((look) => {
    const { fill, stroke } = styleOf(look);
    return [...(fill ? [fill] : []), ...(stroke ? [stroke] : [])];
  });
  const names = [...new Set<ColourName>([...overrides, ...ofLooks])];
  return [
    `.tccl{${names.map((name) => `--${name}:${colours[name][0]}`).join(';')}}`,
    `@media (prefers-color-scheme:dark){.tccl{${names.map((name) => `--${name}:${colours[name][1]}`).join(';')}}}`,
    ...looksStyle([...usedLooks]),
    ...overrideStyle([...overrides]),
  ].join('\n');
}

/** The rule of each look. */
export function looksStyle(used: readonly Look[]): string[] {
  return [
    `.tccl text{font-family:${FONT};stroke:none}.tccl path{fill:none;stroke-linejoin:round;stroke-linecap:round}`,
    ...used.map((look) => `.tccl .t-${look}{${declarations(look)}}`),
  ];
}

/** Rules of colours that replace those of looks. */
export function overrideStyle(names: readonly ColourName[]): string[] {
  return names.map((name) => `.tccl .f-${name}{fill:var(--${name})}.tccl .s-${name}{stroke:var(--${name})}`);
}

function declarations(look: Look): string {
  const { fill, stroke, strokeWidth, opacity, dash, size, weight } = styleOf(look);
  return [
    ...(fill === undefined ? [] : [`fill:var(--${fill})`]),
    ...(stroke === undefined ? [] : [`stroke:var(--${stroke})`]),
    ...(strokeWidth === undefined ? [] : [`stroke-width:${strokeWidth}px`]),
    ...(opacity === undefined ? [] : [`opacity:${opacity}`]),
    ...(dash === undefined ? [] : [`stroke-dasharray:${dash}`]),
    ...(size === undefined ? [] : [`font-size:${size}px`]),
    ...(weight === undefined ? [] : [`font-weight:${weight}`]),
  ].join(';');
}

/** Classes of a mark: its look, and colours instead of the look's. */
export function classesOf({ look, fill, stroke }: Mark): string {
  return [`t-${look}`, ...(fill === undefined ? [] : [`f-${fill}`]), ...(stroke === undefined ? [] : [`s-${stroke}`])].join(' ');
}

function svgMark(mark: Mark): string {
  const { tip, strokeWidth } = mark;
  const common = `class="${classesOf(mark)}"${strokeWidth === undefined ? '' : ` style="stroke-width:${strokeWidth}px"`}`;
  const end = (name: string) => (tip === undefined ? '/>' : `><title>${escape(tip)}</title></${name}>`);
  switch (mark.kind) {
    case 'rect': {
      const { x, y, width, height, radius } = mark;
      return `<rect x="${x}" y="${y}" width="${width}" height="${height}"${radius === undefined ? '' : ` rx="${radius}"`} ${common}${end('rect')}`;
    }
    case 'circle':
      return `<circle cx="${mark.x}" cy="${mark.y}" r="${mark.radius}" ${common}${end('circle')}`;
    case 'path':
      return `<path d="${mark.d}" ${common}${end('path')}`;
    case 'text': {
      const { x, y, text, anchor } = mark;
      const content = tip === undefined ? escape(text) : `<title>${escape(tip)}</title>${escape(text)}`;
      return `<text x="${x}" y="${y}"${anchor === undefined ? '' : ` text-anchor="${anchor}"`} ${common}>${content}</text>`;
    }
  }
}
