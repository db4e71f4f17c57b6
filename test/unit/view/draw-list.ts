import { classesOf } from '../../../src/view/draw/svg.js';
import type { Mark, Picture } from '../../../src/view/draw/picture.js';

/** A picture as text, one mark a line: what golden files hold. */
export function drawList({ title, width, height, marks }: Picture): string {
  return [`${title}, ${width} x ${height}`, ...marks.map(line), ''].join('\n');
}

function line(mark: Mark): string {
  const { subject, tip, strokeWidth } = mark;
  const more = [
    ...(strokeWidth === undefined ? [] : [`width ${strokeWidth}`]),
    ...(subject === undefined ? [] : [`[${subject}]`]),
    ...(tip === undefined ? [] : [`«${tip}»`]),
  ];
  return [mark.kind, classesOf(mark).replaceAll('t-', ''), shapeOf(mark), ...more].join(' ');
}

function shapeOf(mark: Mark): string {
  switch (mark.kind) {
    case 'rect':
      return `${mark.x},${mark.y} ${mark.width} x ${mark.height}`;
    case 'circle':
      return `${mark.x},${mark.y} r ${mark.radius}`;
    case 'path':
      return mark.d;
    case 'text':
      return `${mark.x},${mark.y} ${mark.anchor ?? 'start'} ${mark.text}`;
  }
}
