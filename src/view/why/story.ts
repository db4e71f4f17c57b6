import type { GraphReport } from '../../planner/graph/search-report.js';

/** A step of a search: its sentence, and what was in the way. */
export interface StoryStep {
  readonly text: string;
  readonly details: readonly StoryDetail[];
  /** Steps after it that went the same way at other speeds; only their first sentences. */
  readonly alike: readonly string[];
}

/** A sentence below a step, and the names of the nodes that it is about. */
export interface StoryDetail {
  readonly text: string;
  readonly places: readonly string[];
}

/** The search of a graph as steps; consecutive steps that differ in their speeds only are one. */
export function storyOf({ sentences, places }: Pick<GraphReport, 'sentences' | 'places'>): StoryStep[] {
  const steps: { text: string; details: StoryDetail[]; alike: string[] }[] = [];
  sentences.forEach((sentence, index) => {
    if (!sentence.startsWith('  ')) steps.push({ text: sentence, details: [], alike: [] });
    else steps.at(-1)?.details.push({ text: sentence.trim(), places: places[index] ?? [] });
  });
  const folded: typeof steps = [];
  for (const step of steps) {
    const before = folded.at(-1);
    if (before !== undefined && shapeOf(before) === shapeOf(step)) before.alike.push(step.text);
    else folded.push(step);
  }
  return folded;
}

/** The step without its numbers; a step that found something, or that is no try, is like no other. */
function shapeOf({ text, details }: StoryStep): string | symbol {
  const isVain = details.some(({ text: detail }) => detail.startsWith('Nothing better'));
  if (!isVain) return Symbol();
  return [text, ...details.map((detail) => detail.text.replace(/\(.*\)\.$/, ''))]
    .join('\n')
    .replace(/\d+(?:\.\d+)?|once|one try/g, '#');
}
