import { RemoteError, type TcclError } from '../errors.js';
import { checkComm } from '../check-comm.js';
import type { Communicator } from '../runtime/communicator/communicator.js';

/**
 * Opens something of every rank. `comm` stays usable if a rank fails.
 *
 * @param call that the program made, which is the name of the device's communicator
 * @param kind of the device, in messages
 * @param undo releases what this rank opened, where another rank fails
 * @returns this rank's, with a communicator for the calls of devices alone
 * @throws InvalidArgumentError `ARGUMENT_TYPE`; InvalidUsageError `CLOSED`, or the failure of `comm`; on the rank that fails its
 *   own error, on the others RemoteError `ABORTED`
 */
export async function openOnAllRanks<Opened extends object>(
  comm: Communicator,
  call: string,
  kind: string,
  open: () => Opened | Promise<Opened>,
  undo: (opened: Opened) => void = () => undefined,
): Promise<{ readonly opened: Opened; readonly calls: Communicator }> {
  checkComm(call, comm, `${call}(comm)`);
  comm.checkUsable(call);
  const given = await Promise.resolve()
    .then(open)
    .catch((error: unknown) => error as TcclError);
  const failures = await comm.allGatherObject(given instanceof Error ? withoutName(given.message, call) : undefined);
  if (given instanceof Error) throw given;
  const first = failures.findIndex((reason) => reason !== undefined);
  if (first < 0) return { opened: given, calls: await comm.stream({ name: call }) };
  undo(given);
  throw new RemoteError('ABORTED', `${call}: rank ${first} could not open its ${kind} device: ${failures[first]}`, {
    rank: first,
  });
}

/** A message for other ranks, which begins with the name of the call itself. */
function withoutName(message: string, call: string): string {
  return message.startsWith(`${call}: `) ? message.slice(call.length + 2) : message;
}
