import { counted } from '../../../../counted.js';
import type { FlightProblem } from '../../../readers/stacks.js';
import { aftermath } from '../../rules/codes.js';
import { type LogFinding, namedRanks } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { outputsOf } from './outputs.js';

/** Stacks of processes that hang, and the words of PyTorch's own analyser. */
export function checkStacks(model: LogModel): LogFinding[] {
  return [...analysed(model), ...stacks(model)];
}

function analysed(model: LogModel): LogFinding[] {
  const problems = outputsOf(model, 'fr_trace').flatMap(({ facts }) => facts.problems);
  const blamed = problems.find(({ culprits }) => culprits.length > 0);
  const short = problems.find(({ missing }) => missing.length > 0);
  return [...(blamed === undefined ? [] : [mismatch(blamed)]), ...(short === undefined ? [] : [absent(short)])];
}

function mismatch(problem: FlightProblem): LogFinding {
  const { culprits, place } = problem;
  const ranks = culprits.map(({ rank }) => rank);
  const [first] = culprits;
  const isState = culprits.every(({ error }) => error.includes('STATE_MISMATCH'));
  return {
    code: isState ? 'rank-behind' : 'calls-differ',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: aftermath,
    problem: `${isState ? 'ranks are in different states of' : 'ranks disagree about'} ${called(problem)}: ${namedRanks(ranks)} ${ranks.length === 1 ? 'differs' : 'differ'} from the others (${first?.error ?? ''})`,
    cause: isState
      ? 'these ranks have not begun it or not come out of it'
      : 'code paths differ between ranks: sizes that depend on the data (uneven batches, padding), a condition on the rank, another order of calls',
    remedy: isState
      ? `\`py-spy dump\` of ${namedRanks(ranks)}`
      : 'compare the two calls in the program; pad or exchange sizes before the collective',
    places: [place],
  };
}

function absent(problem: FlightProblem): LogFinding {
  const { missing, worldSize, place } = problem;
  return {
    code: 'rank-behind',
    severity: 'error',
    kind: 'fault',
    ranks: missing,
    explains: aftermath,
    problem: `${namedRanks(missing)} never joined ${called(problem)}${worldSize === undefined ? '' : `, in which the other ${worldSize - missing.length} ranks wait`}`,
    cause: 'these ranks are elsewhere: other code, an exception, slow data or a checkpoint, or they died',
    remedy: `the log of ${namedRanks(missing)} first; then \`py-spy dump\` of them`,
    places: [place],
  };
}

function called({ operation, sequence, group, state }: FlightProblem): string {
  return `${operation === '' ? 'a collective' : operation}${sequence === undefined ? '' : ` (number ${sequence}${group === '' ? '' : ` of group ${group}`})`}${state === '' ? '' : `, ${state}`}`;
}

/** Functions in which a rank waits for others. */
const waiting =
  /^(?:all_?reduce|all_?gather\w*|reduce_?scatter\w*|broadcast\w*|barrier|all_?to_?all\w*|recv|send|irecv|isend|wait|synchronize|monitored_barrier|_all_gather_base|nccl\w*|pncclGroupEnd|cudaStreamSynchronize|cuStreamSynchronize|ncclGroupEnd)$/i;
/** Frames of no interest: threads, event loops and wrappers of collectives. */
const plumbing = /(?:^|\/)(?:threading|c10d_logger|distributed_c10d|_tensor|contextlib|selectors|queue|concurrent\/.*)\.py/;

/** In a job that hangs most ranks wait in a collective: the one whose stack is elsewhere holds them. */
function stacks(model: LogModel): LogFinding[] {
  const processes = outputsOf(model, 'py-spy').flatMap(({ facts, host }) =>
    facts.processes.flatMap((process) => {
      const main = process.threads.find(({ name }) => name === 'MainThread') ?? process.threads[0];
      const [top] = main?.frames ?? [];
      if (main === undefined || top === undefined) return [];
      const wait = main.frames.slice(0, 12).find(({ name }) => waiting.test(name.replace(/^.*[.:]/, '')));
      const own = main.frames.find(({ file }) => !plumbing.test(file) && !/(?:torch|deepspeed|megatron|lightning)\//.test(file));
      return [{ ...process, host, wait, own, top }];
    }),
  );
  const inside = processes.filter(({ wait }) => wait !== undefined);
  const outside = processes.filter(({ wait }) => wait === undefined);
  const [first] = outside;
  const named = ({ pid, host }: (typeof processes)[number]) => `${host === '' ? '' : `${host} `}process ${pid}`;
  if (inside.length > 0 && first !== undefined && outside.length <= inside.length)
    return [
      {
        code: 'rank-behind',
        severity: 'error',
        kind: 'fault',
        explains: aftermath,
        problem: `${outside.map(named).slice(0, 4).join(', ')} ${outside.length === 1 ? 'is' : 'are'} in ${first.own?.name ?? first.top.name} (${first.own?.file ?? first.top.file}), while ${counted(inside.length, 'other process waits', 'other processes wait')} in ${inside[0]?.wait?.name ?? ''}`,
        cause: 'that rank is elsewhere in its code: slow data, a checkpoint, other work, or a lock; the others wait for it',
        remedy: 'dump its stack again after a minute: if it has not moved, that function is the cause',
        places: outside.slice(0, 4).map(({ place }) => place),
      },
    ];
  const [waiter] = inside;
  if (waiter === undefined) return [];
  return [
    {
      code: 'collective-stuck',
      severity: 'warning',
      kind: 'symptom',
      problem: `${counted(inside.length, 'process waits', 'processes wait')} in ${waiter.wait?.name ?? ''}${waiter.own === undefined ? '' : `, called from ${waiter.own.name} (${waiter.own.file})`}`,
      cause:
        processes.length === 1
          ? 'one stack does not show which rank is behind'
          : 'all dumped processes wait: for a rank whose stack is not here, or for the network or a GPU',
      remedy: 'give the stacks of all ranks at the same time: `py-spy dump` on every host',
      places: inside.slice(0, 4).map(({ place }) => place),
    },
  ];
}
