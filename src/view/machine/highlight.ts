import { lineMark, type Mark, type Picture, type Point, type RectMark } from '../draw/picture.js';

/**
 * A machine with one thing pointed at: the devices by name, the link between them where there is one, else a dashed line from
 * one to the other, which has no direct link.
 */
export function highlighted(picture: Picture, places: readonly string[], what: string): Picture {
  const [from, to] = places;
  if (from === undefined) return picture;
  const boxes = places.flatMap((place) => boxOf(picture, place) ?? []);
  const links = to === undefined ? [] : pointedLinks(picture, from, to, what);
  const [a, b] = boxes;
  const line: Mark[] =
    links.length > 0
      ? links
      : a === undefined || b === undefined
        ? []
        : [lineMark('refused', middleOf(a), middleOf(b), { tip: what })];
  return {
    ...picture,
    title: `${picture.title}; ${what}`,
    marks: [...picture.marks, ...line, ...boxes.map((box) => frameAround(box, what))],
  };
}

/** A machine with a way through it pointed at: both ends, and the links between devices that follow each other. */
export function withWay(picture: Picture, places: readonly string[], what: string): Picture {
  const ends = [places[0], places.at(-1)].flatMap((place) => (place === undefined ? [] : (boxOf(picture, place) ?? [])));
  const links = places.slice(1).flatMap((place, index) => pointedLinks(picture, places[index] ?? '', place, what));
  return {
    ...picture,
    title: `${picture.title}; ${what}`,
    marks: [...picture.marks, ...links, ...ends.map((box) => frameAround(box, what))],
  };
}

function pointedLinks({ marks }: Picture, from: string, to: string, what: string): Mark[] {
  return marks.flatMap((mark): Mark[] =>
    mark.kind === 'path' && (mark.subject === `link/${from}>${to}` || mark.subject === `link/${to}>${from}`)
      ? [{ ...mark, look: 'pointed', stroke: 'bad', strokeWidth: 6, tip: what }]
      : [],
  );
}

function frameAround({ x, y, width, height, radius = 4 }: RectMark, what: string): Mark {
  return { kind: 'rect', look: 'frame', x: x - 3, y: y - 3, width: width + 6, height: height + 6, radius: radius + 2, tip: what };
}

function boxOf({ marks }: Picture, subject: string): RectMark | undefined {
  return marks.find((mark): mark is RectMark => mark.kind === 'rect' && mark.subject === subject);
}

function middleOf({ x, y, width, height }: RectMark): Point {
  return [x + width / 2, y + height / 2];
}

/**
 * A picture with what is not so in another one of the same machine: other devices have a frame; other links, also those of
 * another bandwidth or load, a dashed line.
 */
export function withDifferences(picture: Picture, other: Picture): Picture {
  const others = new Set(other.marks.map(identityOf));
  const differing = picture.marks.filter((mark) => mark.subject !== undefined && !others.has(identityOf(mark)));
  const marks = differing.flatMap((mark): Mark[] => {
    if (mark.kind === 'path') return [{ ...mark, look: 'differs', stroke: 'chosen', strokeWidth: 2 }];
    if (mark.kind !== 'rect') return [];
    const { x, y, width, height, radius, subject } = mark;
    const tip = mark.tip ?? 'not the same on the other side';
    return [
      {
        kind: 'rect',
        look: 'otherframe',
        x,
        y,
        width,
        height,
        ...(radius === undefined ? {} : { radius }),
        ...(subject === undefined ? {} : { subject }),
        tip,
      },
    ];
  });
  return { ...picture, title: `${picture.title}; ${differing.length} marks differ`, marks: [...picture.marks, ...marks] };
}

/** Properties of a mark but for its place. Versions of NCCL before 2.30 have no names for the hardware of GPUs. */
function identityOf({ kind, look, fill, stroke, strokeWidth, subject, tip }: Mark): string {
  return [kind, look, fill, stroke, strokeWidth, subject, tip].join(' ').replaceAll('DEV/', 'GPU/');
}
