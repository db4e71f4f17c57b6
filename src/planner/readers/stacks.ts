import type { TextPlace, ToolFormat } from './section.js';

/** `py-spy dump`: stacks of a process's threads. */
export interface ProcessStacks {
  readonly processes: readonly {
    readonly pid: number;
    readonly command: string;
    readonly threads: readonly { readonly name: string; readonly state: string; readonly frames: readonly StackFrame[] }[];
    readonly place: TextPlace;
  }[];
}

export interface StackFrame {
  readonly name: string;
  readonly file: string;
}

export const processStacks: ToolFormat<'py-spy', ProcessStacks> = {
  name: 'py-spy',
  commands: ['py-spy dump', 'py-spy dump --native'],
  holds: /^Process \d+: |^Thread |^\s{4}\S/,
  needles: ['process ', 'thread '],
  begins: /^Process \d+: \S|^Thread (?:\d+|0x[0-9a-f]+) \([\w+]{2,20}\)(?:: "|$)/,
  parse: (lines) => {
    const processes: {
      pid: number;
      command: string;
      threads: { name: string; state: string; frames: StackFrame[] }[];
      place: TextPlace;
    }[] = [];
    for (const { text, place } of lines) {
      const [, pid, command = ''] = /^Process (\d+): (.*)$/.exec(text) ?? [];
      if (pid !== undefined) processes.push({ pid: Number(pid), command, threads: [], place });
      const [, id, state = '', name = ''] = /^Thread (\d+|0x[0-9a-f]+) \(([\w+]{2,20})\)(?:: "([^"]*)")?/.exec(text) ?? [];
      if (id !== undefined) {
        if (processes.length === 0) processes.push({ pid: 0, command: '', threads: [], place });
        processes.at(-1)?.threads.push({ name, state, frames: [] });
      }
      const [, frame = '', file = ''] = /^\s+(\S.{0,200}?) \(([^()]{1,300})\)\s*$/.exec(text) ?? [];
      if (frame !== '') processes.at(-1)?.threads.at(-1)?.frames.push({ name: frame, file });
    }
    return processes.every(({ threads }) => threads.length === 0) ? undefined : { processes };
  },
};

/** Words of PyTorch's own analyser of flight recordings (`torchfrtrace`, `fr_trace`). */
export interface FlightAnalysis {
  readonly problems: readonly FlightProblem[];
}

export interface FlightProblem {
  readonly sequence: number | undefined;
  /** `0:default_pg` */
  readonly group: string;
  readonly operation: string;
  readonly missing: readonly number[];
  /** Ranks that the analyser blames, with its words. */
  readonly culprits: readonly { readonly rank: number; readonly error: string }[];
  readonly worldSize: number | undefined;
  readonly state: string;
  readonly place: TextPlace;
}

type GrowingProblem = { -readonly [Key in keyof FlightProblem]: FlightProblem[Key] } & {
  missing: number[];
  culprits: { rank: number; error: string }[];
};

export const flightAnalysis: ToolFormat<'fr_trace', FlightAnalysis> = {
  name: 'fr_trace',
  commands: ['torchfrtrace'],
  holds: /^\s*(?:Not all ranks|Collective|group info|collective|missing ranks|world size|error msg)|Culprit rank/,
  patience: 200,
  needles: ['collective ', 'not all ranks joining'],
  begins: /^\s*(?:Not all ranks joining collective|Collective (?:sequence number:? ?)?\d+ (?:at entry \d+ )?(?:has )?errors)/,
  parse: (lines) => {
    const problems: GrowingProblem[] = [];
    for (const { text, place } of lines) {
      const head =
        /^\s*(?:Not all ranks joining collective,?(?: sequence number:?)? ?(\d+)|Collective (?:sequence number:? ?)?(\d+) (?:at entry \d+ )?(?:has )?errors)/.exec(
          text,
        );
      if (head !== null) {
        const number = head[1] ?? head[2];
        problems.push({
          sequence: number === undefined ? undefined : Number(number),
          group: '',
          operation: '',
          missing: [],
          culprits: [],
          worldSize: undefined,
          state: '',
          place,
        });
      }
      const problem = problems.at(-1);
      if (problem === undefined) continue;
      const [, name, value = ''] =
        /^\s*(group info|collective|missing ranks|world size|collective state|error msg): (.*)$/.exec(text) ?? [];
      if (name === 'group info') problem.group = value.trim();
      else if (name === 'collective') problem.operation = value.trim().replace(/^nccl:/, '');
      else if (name === 'missing ranks') problem.missing = [...value.matchAll(/\d+/g)].map(Number);
      else if (name === 'world size') problem.worldSize = Number(value);
      else if (name === 'collective state') problem.state = value.trim();
      for (const [, rank = '', error = ''] of text.matchAll(/Culprit rank (\d+); (.*?)(?=, Culprit rank|$)/g))
        problem.culprits.push({ rank: Number(rank), error: error.trim() });
    }
    return problems.length === 0 ? undefined : { problems };
  },
};
