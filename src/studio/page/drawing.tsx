import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type ColourName, colours, type Look, looks } from '../../view/draw/palette.js';
import type { Mark, Picture } from '../../view/draw/picture.js';
import { classesOf, looksStyle, overrideStyle, svgFile } from '../../view/draw/svg.js';
import { questionOf } from '../answer-links.js';
import { change, phoneWidth, selected } from './store.js';

/** Style sheet of all pictures: every look and colour, light and dark. */
export function drawingStyle(): string {
  const names = Object.keys(colours) as ColourName[];
  const variables = (theme: 0 | 1) => names.map((name) => `--${name}:${colours[name][theme]}`).join(';');
  return [
    `.tccl{${variables(0)}}`,
    `@media (prefers-color-scheme:dark){.tccl{${variables(1)}}}`,
    ...looksStyle(Object.keys(looks) as Look[]),
    ...overrideStyle(names),
  ].join('\n');
}

/** Pictures that would be scaled more are shown in full size, in a frame that scrolls; a phone shows more of them as a whole. */
const LEAST_SCALE = 0.6;
const LEAST_PHONE_SCALE = 0.25;
/** A picture that is scaled less is as good as in full size. */
const NEARLY = 0.95;

/** Pixels of a view beside the settings and within the frame of a picture, as in style.css. */
function viewWidth(): number {
  return Math.min(window.innerWidth, 1720) - (window.innerWidth > 860 ? 350 : 24) - 14;
}

/** A picture whose marks can be selected, with buttons that save it and change its size. */
export function Drawing({ picture, name }: { readonly picture: Picture; readonly name: string }): JSX.Element {
  const { width, height, title, marks } = picture;
  const scale = viewWidth() / width;
  const [isFull, setFull] = useState(scale < (phoneWidth.value === undefined ? LEAST_SCALE : LEAST_PHONE_SCALE));
  const chosen = selected.value;
  const select = (event: Event) => {
    const mark = event.target instanceof Element ? event.target.closest('[data-subject]') : null;
    const subject = mark?.getAttribute('data-subject') ?? undefined;
    const ask = subject === undefined ? undefined : questionOf(subject);
    change({ selected: subject === chosen ? undefined : subject, ...(ask === undefined ? {} : { ask }) });
  };
  return (
    <figure>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <svg
          class={isFull ? 'tccl' : 'tccl fitted'}
          viewBox={`0 0 ${width} ${height}`}
          width={width}
          height={height}
          role="img"
          aria-label={title}
          onClick={select}
        >
          {marks.map((mark, index) => (
            <DrawnMark key={index} mark={mark} chosen={chosen} />
          ))}
        </svg>
      </div>
      <figcaption>
        <button type="button" onClick={() => saveSvg(name, picture)}>
          Save SVG
        </button>
        <button type="button" onClick={() => void savePng(name, picture)}>
          Save PNG
        </button>
        {scale > NEARLY ? null : (
          <button type="button" aria-pressed={isFull} onClick={() => setFull(!isFull)}>
            Full size
          </button>
        )}
      </figcaption>
    </figure>
  );
}

function DrawnMark({ mark, chosen }: { readonly mark: Mark; readonly chosen: string | undefined }): JSX.Element {
  const { subject, tip, strokeWidth } = mark;
  const isChosen = chosen !== undefined && subject !== undefined && goesWith(subject, chosen);
  const common = {
    class: `${classesOf(mark)}${isChosen ? ' chosen' : ''}`,
    ...(subject === undefined ? {} : { 'data-subject': subject }),
    ...(strokeWidth === undefined ? {} : { style: { strokeWidth: `${strokeWidth}px` } }),
  };
  const title = tip === undefined ? null : <title>{tip}</title>;
  switch (mark.kind) {
    case 'rect':
      return (
        <rect x={mark.x} y={mark.y} width={mark.width} height={mark.height} rx={mark.radius} {...common}>
          {title}
        </rect>
      );
    case 'circle':
      return (
        <circle cx={mark.x} cy={mark.y} r={mark.radius} {...common}>
          {title}
        </circle>
      );
    case 'path':
      return (
        <path d={mark.d} {...common}>
          {title}
        </path>
      );
    case 'text':
      return (
        <text x={mark.x} y={mark.y} text-anchor={mark.anchor} {...common}>
          {title}
          {mark.text}
        </text>
      );
  }
}

/** True for marks of the chosen subject, and for cells of a matrix whose row or column it is. */
function goesWith(subject: string, chosen: string): boolean {
  if (subject === chosen) return true;
  if (!subject.startsWith('path/')) return false;
  const [from, to] = subject.slice('path/'.length).split('>');
  return from === chosen || to === chosen;
}

/** Gives a file to the browser's downloads. */
export function save(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Saves a picture as a file of SVG. */
export function saveSvg(name: string, picture: Picture): void {
  save(`${name}.svg`, svgBlob(picture));
}

function svgBlob(picture: Picture): Blob {
  return new Blob([svgFile(picture)], { type: 'image/svg+xml' });
}

/** Pixels of a PNG for one of the picture. */
const PNG_SCALE = 2;
/** Pixels at most on a side: browsers have no larger canvas. */
const MOST_PNG_SIDE = 16_384;

/** Saves a picture as a PNG. */
export async function savePng(name: string, picture: Picture): Promise<void> {
  const url = URL.createObjectURL(svgBlob(picture));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const scale = Math.min(PNG_SCALE, MOST_PNG_SIDE / picture.width, MOST_PNG_SIDE / picture.height);
    const canvas = document.createElement('canvas');
    canvas.width = Math.floor(scale * picture.width);
    canvas.height = Math.floor(scale * picture.height);
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/png'));
    if (blob !== null) save(`${name}.png`, blob);
  } finally {
    URL.revokeObjectURL(url);
  }
}
