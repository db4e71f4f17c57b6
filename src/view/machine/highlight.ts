import { lineMark, type Mark, type Picture, type Point, type RectMark } from '../draw/picture.js';

/**
 * A machine with one thing pointed at: the devices by name, the link between them where there is one, else a dashed line from
 * one to the other, which has no direct link.
 */
export function highlighted(picture: Picture, places: readonly string[], what: string): Picture {
  const [from, to] = places;
  if (from === undefined) return picture;
  const boxes = places.flatMap((place) => boxOf(picture, place) ?? []);
  const links = picture.marks.filter(
    ({ subject }) => to !== undefined && (subject === `link/${from}>${to}` || subject === `link/${to}>${from}`),
  );
  const [a, b] = boxes;
  const line: Mark[] =
    links.length > 0
      ? links.flatMap((mark) =>
          mark.kind === 'path' ? [{ ...mark, look: 'pointed', stroke: 'bad', strokeWidth: 6, tip: what }] : [],
        )
      : a === undefined || b === undefined
        ? []
        : [lineMark('refused', middleOf(a), middleOf(b), { tip: what })];
  return {
    ...picture,
    title: `${picture.title}; ${what}`,
    marks: [
      ...picture.marks,
      ...line,
      ...boxes.map(({ x, y, width, height, radius = 4 }): Mark => ({
        kind: 'rect',
        look: 'frame',
        x: x - 3,
        y: y - 3,
        width: width + 6,
        height: height + 6,
        radius: radius + 2,
        tip: what,
      })),
    ],
  };
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
