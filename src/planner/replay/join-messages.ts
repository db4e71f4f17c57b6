import { counted } from '../../counted.js';
import { busiestBytes } from '../plan/prediction.js';
import type { PairMessage } from '../schedule/pairs.js';
import type { Joined, JobCall } from './job-call.js';
import { shiftOf } from './shift.js';
import { BATCH, type RankCall, type RankTrace } from './trace.js';

/** True for sends and receives, which are joined by the ranks at both ends and not by the communicator. */
export function isOfPairs({ collective, messages }: RankCall): boolean {
  return collective === undefined && messages !== undefined && messages.length > 0;
}

/** A call of a rank with sends and receives. */
interface Part {
  readonly rank: number;
  readonly call: RankCall;
}

/** One end of a message. */
interface End {
  readonly part: Part;
  readonly bytes: number;
}

/** Calls of several ranks that are joined by messages. */
interface Exchange {
  /** At most one call of a rank. */
  readonly parts: Map<number, RankCall>;
  readonly messages: PairMessage[];
}

/**
 * Joins sends with receives: the first of a communicator from one rank to another with the first there, and so on. Kernels that
 * messages join make one call, of which each rank has one kernel:
 *
 *     rank 0   send to 1 ─────────┐
 *     rank 1   receive from 0, send to 2 ──┐      one call
 *     rank 2   receive from 1 ─────────────┘
 *
 * @param firstIndex number of the first call
 */
export function joinMessages(traces: readonly RankTrace[], firstIndex: number): Joined {
  const exchangeOf = new Map<RankCall, Exchange>();
  const ways = new Map<string, { readonly from: number; readonly to: number; readonly sends: End[]; readonly receives: End[] }>();
  for (const { rank, calls } of traces)
    for (const call of calls.filter(isOfPairs)) {
      exchangeOf.set(call, { parts: new Map([[rank, call]]), messages: [] });
      for (const { isSend, peer, bytes } of call.messages ?? []) {
        const [from, to] = isSend ? [rank, peer] : [peer, rank];
        const key = `${call.group} ${from}>${to}`;
        const way = ways.get(key) ?? { from, to, sends: [], receives: [] };
        ways.set(key, way);
        (isSend ? way.sends : way.receives).push({ part: { rank, call }, bytes });
      }
    }
  let alone = 0;
  const traced = new Set(traces.map(({ rank }) => rank));
  for (const { from, to, sends, receives } of ways.values()) {
    const shift = shiftOf(receives, sends, (one, other) => one.bytes === other.bytes);
    const sendOf = new Map(receives.map((receive, place) => [receive, sends[place + shift]]));
    const matched = new Set(sendOf.values());
    if (traced.has(from) && traced.has(to))
      alone +=
        receives.filter((receive) => sendOf.get(receive) === undefined).length +
        sends.filter((send) => !matched.has(send)).length;
    for (const send of sends) exchangeOf.get(send.part.call)?.messages.push({ from, to, bytes: send.bytes });
    for (const [receive, send] of sendOf) {
      if (send === undefined) exchangeOf.get(receive.part.call)?.messages.push({ from, to, bytes: receive.bytes });
      else unite(exchangeOf, send.part.call, receive.part.call);
    }
  }
  const exchanges = [...new Set(exchangeOf.values())];
  return {
    calls: exchanges.map((exchange, place) => jobCall(exchange, firstIndex + place)),
    notes:
      alone === 0
        ? []
        : [`${counted(alone, 'message')} that only one of the two ranks recorded: they begin when this rank comes`],
  };
}

/** Puts the calls of two exchanges together, unless a rank has a call in both: then they stay two. */
function unite(exchangeOf: Map<RankCall, Exchange>, one: RankCall, other: RankCall): void {
  const [into, from] = [exchangeOf.get(one), exchangeOf.get(other)];
  if (into === undefined || from === undefined || into === from) return;
  if ([...from.parts.keys()].some((rank) => into.parts.has(rank))) return;
  for (const [rank, call] of from.parts) {
    into.parts.set(rank, call);
    exchangeOf.set(call, into);
  }
  into.messages.push(...from.messages);
}

function jobCall({ parts, messages }: Exchange, index: number): JobCall {
  const [first] = parts.values();
  if (first === undefined) throw new RangeError('an exchange without calls');
  const { group, groupName, members, type } = first;
  const ranks = new Set([...parts.keys(), ...messages.flatMap(({ from, to }) => [from, to])]);
  return {
    ...{ index, group, groupName, type, messages, parts, size: ranks.size, collective: undefined },
    members: members ?? [...ranks].sort((a, b) => a - b),
    operation: messages.length === 1 ? 'send' : BATCH,
    bytes: busiestBytes(messages),
  };
}

/** The messages of an all-to-all whose parts differ; undefined where all are alike. */
export function unevenMessages(parts: ReadonlyMap<number, RankCall>): readonly PairMessage[] | undefined {
  const bytesOf = new Map<string, PairMessage>();
  for (const [rank, { messages = [] }] of parts)
    for (const { isSend, peer, bytes } of messages) {
      const [from, to] = isSend ? [rank, peer] : [peer, rank];
      const key = `${from} ${to}`;
      // The sender knows best; a rank without a trace is known by what others get.
      if (isSend || !bytesOf.has(key)) bytesOf.set(key, { from, to, bytes });
    }
  return bytesOf.size === 0 ? undefined : [...bytesOf.values()];
}
