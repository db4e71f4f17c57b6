import type { CallDifference, LoggedCall } from '../job/calls.js';
import type { LogFinding } from './finding.js';
import type { LogModel } from '../job/model.js';
import { hasEnded } from '../job/outcome.js';

/** Numbers of ncclDataType_t. */
const datatypes = ['int8', 'uint8', 'int32', 'uint32', 'int64', 'uint64', 'float16', 'float32', 'float64', 'bfloat16'];

/** Ranks that call different collectives wait for each other without end, or compute nonsense. */
export function checkCalls(model: LogModel): LogFinding[] {
  return model.calls.slice(0, 1).map((difference) => finding(difference, model));
}

function finding({ first, other, communicator }: CallDifference, model: LogModel): LogFinding {
  return {
    code: 'calls-differ',
    severity: hasEnded(model) ? 'info' : 'error',
    kind: hasEnded(model) ? 'note' : 'fault',
    communicator,
    explains: ['watchdog-timeout', 'collective-stuck', 'remote-closed', 'exit-child', 'calls-failed'],
    problem: `ranks call different collectives as number ${first.call.opCount}: ${told(first)}, but ${told(other)}`,
    cause: 'code paths differ between ranks (a condition on the rank, uneven data, another order)',
    remedy: "look at the program's stack at that call on both ranks",
    places: [first.place, other.place],
  };
}

function told({ host, pid, cudaDev, call }: LoggedCall): string {
  const { operation, count, datatype, root } = call;
  const rooted = operation === 'Broadcast' || operation === 'Reduce' ? ` with root ${root}` : '';
  return `${operation} of ${count} ${datatypes[datatype] ?? `of type ${datatype}`}${rooted} on ${host}:${pid} device ${cudaDev}`;
}
