import { MessageWriter } from '../../planner/readers/protobuf.js';
import type { Schedule } from '../../planner/schedule/schedule.js';
import { operationsOf, type Operation } from './operations.js';

/** Numbers of Chakra's schema (MLCommons, `schema/protobuf/et_def.proto`). */
const SCHEMA = '0.0.4';
const NODE = { id: 1, name: 2, type: 3, after: 5, durationUs: 7, attribute: 10 } as const;
const ATTRIBUTE = { name: 1, int32: 7, int64: 9, bool: 27 } as const;
const TYPE = { compute: 4, send: 5, recv: 6 } as const;

/**
 * The messages of a schedule as Chakra's execution traces, one for each rank, as ASTRA-sim takes them for a collective of one's
 * own (`custom_collectives`): node 0 is the launch, then a node for each message that a thread block sends or receives.
 *
 * @param wireBytes bytes on the wire by bytes of data, with the flags of LL and LL128
 * @param launchUs time before the first message of a rank, in whole µs there
 * @throws InvalidArgumentError for a network that reduces, which is no rank, and for too many moves
 */
export function chakraFiles(schedule: Schedule, wireBytes: number, launchUs: number): Uint8Array[] {
  return operationsOf(schedule, wireBytes).map((operations) => {
    const header = new MessageWriter().text(1, SCHEMA).delimited();
    const launch = new MessageWriter()
      .number(NODE.id, 0)
      .text(NODE.name, 'launch')
      .number(NODE.type, TYPE.compute)
      .number(NODE.durationUs, Math.max(1, Math.round(launchUs)))
      .message(NODE.attribute, attribute('is_cpu_op', ATTRIBUTE.bool, 0))
      .delimited();
    return joined([header, launch, ...operations.map((operation, place) => node(operation, place + 1))]);
  });
}

function node({ verb, bytes, peer, tag, worker, after }: Operation, id: number): Uint8Array {
  const written = new MessageWriter()
    .number(NODE.id, id)
    .text(NODE.name, `${verb} block ${worker}`)
    .number(NODE.type, TYPE[verb]);
  for (const other of after) written.number(NODE.after, other + 1);
  const attributes = [
    attribute('is_cpu_op', ATTRIBUTE.bool, 0),
    attribute('comm_size', ATTRIBUTE.int64, bytes),
    // The other end is the rank itself.
    attribute(verb === 'send' ? 'comm_dst' : 'comm_src', ATTRIBUTE.int32, peer),
    attribute('comm_tag', ATTRIBUTE.int32, tag),
  ];
  for (const each of attributes) written.message(NODE.attribute, each);
  return written.delimited();
}

function attribute(name: string, field: number, value: number): MessageWriter {
  return new MessageWriter().text(ATTRIBUTE.name, name).number(field, value);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
