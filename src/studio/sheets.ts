import type { Picture } from '../view/draw/picture.js';
import { type Block, sheet } from '../view/draw/sheet.js';
import { lanesPicture } from '../view/motion/motion.js';
import type { Changes, ShownFinding, ShownLog, ShownPart, ShownReport } from './messages.js';

/** A view with all its texts, tables and pictures as one picture, to be saved. */
export function sheetOfPart(title: string, part: ShownPart): Picture {
  return sheet(title, blocksOf(part));
}

/** The diagnosis of the opened files as one picture. */
export function sheetOfLog(title: string, log: ShownLog): Picture {
  const { outcome, verdict, where, also, open, facts, ranks, pairs, findings } = log;
  return sheet(title, [
    { kind: 'head', text: `${outcome}: ${verdict}${where === '' ? '' : `, in ${where}`}` },
    ...also.map(([place, problem]) => item(place === '' ? problem : `${place}: ${problem}`)),
    ...open.map(text),
    ...facts.map(text),
    ...[...ranks, ...pairs].map(picture),
    ...findingBlocks(findings),
  ]);
}

function blocksOf(part: ShownPart): Block[] {
  switch (part.view) {
    case 'machine':
      return part.hosts.map((host) => picture(host.picture));
    case 'cluster':
      return [picture(part.picture), ...findingBlocks(part.findings)];
    case 'matrix':
      return [...part.hosts.map((host) => host.picture), ...(part.path === undefined ? [] : [part.path.picture])].map(picture);
    case 'choice': {
      const { believed, windows, picture: times, note } = part;
      const notes = note === undefined ? [] : [text(note)];
      return [picture(believed), ...(windows === undefined ? [] : [picture(windows)]), ...notes, picture(times)];
    }
    case 'channels':
      return [
        ...part.hosts.flatMap(({ name, rings }): Block[] => [
          { kind: 'head', text: `Rings within ${name}` },
          {
            kind: 'table',
            head: ['channels', 'in by', 'ranks', 'out by'],
            rows: rings.map(({ channels, entry = '', ranks, exit = '' }) => [channels.join(' '), entry, ranks.join(' '), exit]),
          },
        ]),
        { kind: 'head', text: 'In use' },
        ...part.uses.map(({ name, used, text: why }) => text(`${name}: ${used}. ${why}`)),
      ];
    case 'motion': {
      const { summary, motion } = part;
      const pictures = motion === undefined ? [] : [motion.stage, lanesPicture(motion, motion.endUs)];
      return [text(summary), ...pictures.map(picture)];
    }
    case 'why':
      return [...findingBlocks(part.findings), ...part.reports.flatMap(reportBlocks)];
    case 'changes':
      return part.changes === undefined ? [text('Nothing is set yet.')] : changeBlocks(part.changes);
    case 'learn':
      return [
        ...part.stages.flatMap(({ title, sentences, values }): Block[] => [
          { kind: 'head', text: title },
          text(sentences.join(' ')),
          { kind: 'lines', lines: values },
        ]),
        { kind: 'head', text: 'Exercises' },
        ...part.exercises.map(({ question }) => item(question)),
      ];
  }
}

function changeBlocks({ from, to, rules, calls, decisions, pictures }: Changes): Block[] {
  return [
    text(`a: ${from}`),
    text(`b: ${to}`),
    ...pictures.flatMap(([a, b]) => [picture(a), picture(b)]),
    ...rules.flatMap(({ name, lines }): Block[] => [{ kind: 'head', text: `Rule ${name}` }, ...lines.map(item)]),
    { kind: 'head', text: "Calls, by NCCL's own model" },
    { kind: 'table', head: ['collective', 'size', 'a', 'time', 'b', 'time', 'b / a'], rows: calls },
    { kind: 'head', text: 'Decisions' },
    { kind: 'table', head: ['part', 'what', 'a', 'b'], rows: decisions },
  ];
}

function reportBlocks({ title, steps }: ShownReport): Block[] {
  return [
    { kind: 'head', text: title },
    ...steps.flatMap(({ text: sentence, details, alike }) => [
      text(sentence),
      ...details.map((detail) => item(detail.text)),
      ...(alike.length === 0 ? [] : [item(`and ${alike.length} more like it`)]),
    ]),
  ];
}

function findingBlocks(findings: readonly ShownFinding[]): Block[] {
  return findings.flatMap(({ severity, problem, why, remedy, lines }): Block[] => [
    { kind: 'head', text: `${severity}: ${problem}` },
    text(why),
    text(`To do: ${remedy}`),
    { kind: 'lines', lines },
  ]);
}

function text(sentence: string): Block {
  return { kind: 'text', text: sentence };
}

function item(sentence: string): Block {
  return { kind: 'item', text: sentence };
}

function picture(drawn: Picture): Block {
  return { kind: 'picture', picture: drawn };
}
