import type { Exercise } from './messages.js';

/** True if an answer is the solution; the order of numbers, separators and case do not count. */
export function isSolution({ solution }: Pick<Exercise, 'solution'>, answer: string): boolean {
  return plain(answer) === plain(solution);
}

function plain(text: string): string {
  const words = [...new Set(text.toLowerCase().split(/[\s,;]+/))];
  return words
    .filter((word) => word !== '' && word !== 'and')
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .join(' ');
}
