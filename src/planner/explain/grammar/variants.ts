import type { Counterfactual } from '../counterfactual/counterfactual.js';
import type { Rate } from './figures.js';
import type { Variant } from './question.js';

/** Something that a figure may belong to, with its place. */
export interface Place {
  readonly at: number;
  readonly state: Counterfactual;
}

/** `NCCL_ALGO=Ring` beside a figure. */
export function forcedIn(text: string): Place[] {
  return [...text.matchAll(/NCCL_ALGO\s*=\s*([\w^]+)/gi)].map(({ 1: value = '', index }) => ({
    at: index,
    state: { kind: 'variable', name: 'NCCL_ALGO', value },
  }));
}

/**
 * Figures that belong to several layouts or algorithms: each stands in a part of the text with one of these.
 *
 *     // 480 GB/s on one node and half of it on two nodes
 *     // [{ value: 480, state: { kind: 'nodes', count: 1 } }, { value: 240, state: { kind: 'nodes', count: 2 } }]
 */
export function variantsIn(text: string, rates: readonly Rate[], places: readonly Place[]): readonly Variant[] {
  if (rates.length < 2) return [];
  // `, and`, `; `, `. `, ` but ` end a part where the next one has a figure of its own.
  const ends = [...text.matchAll(/[;.?!]\s|,\s|\s(?:and|but|while|whereas|vs\.?|versus|then)\s/gi)].map(({ index }) => index);
  const partOf = (at: number) => ends.filter((end) => end <= at).length;
  const groups = new Map<Counterfactual['kind'], Variant[]>();
  const keyOf = ({ kind }: Counterfactual) => (kind === 'gpus' ? 'ranks' : kind);
  for (const rate of rates) {
    const own = places.filter(({ at }) => partOf(at) === partOf(rate.at));
    for (const kind of new Set(own.map(({ state }) => keyOf(state)))) {
      const states = own.filter(({ state }) => keyOf(state) === kind);
      const [first] = states;
      if (states.length === 1 && first !== undefined)
        groups.set(kind, [...(groups.get(kind) ?? []), { value: rate.value, state: first.state }]);
    }
  }
  const isDistinct = (group: readonly Variant[]) =>
    group.length === rates.length && new Set(group.map(({ state }) => JSON.stringify(state))).size === group.length;
  const inParts = [...groups.values()].find(isDistinct);
  if (inParts !== undefined) return inParts;
  // As many of a kind as figures: in their order.
  const kinds = [...new Set(places.map(({ state }) => keyOf(state)))];
  const inOrder = kinds.map((kind) =>
    places
      .filter(({ state }) => keyOf(state) === kind)
      .sort((a, b) => a.at - b.at)
      .map(({ state }, index): Variant => ({ value: rates[index]?.value ?? 0, state })),
  );
  return inOrder.find(isDistinct) ?? [];
}
