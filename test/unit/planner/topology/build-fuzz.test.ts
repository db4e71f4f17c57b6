import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../../../src/errors.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { mergeNics } from '../../../../src/planner/topology/combine/merge-nics.js';
import { fuseTopologies } from '../../../../src/planner/topology/combine/fuse.js';
import { localSystems } from '../../../../src/planner/topology/local-systems.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { cloneElement, descendants, detach, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { build, parametersWith } from './machine.js';
import { randomMachine } from './random-machine.js';
import { runs } from '../../../runs.js';

type Mutation =
  | { readonly kind: 'drop' | 'duplicate' | 'move' | 'swap'; readonly at: number; readonly to: number }
  | { readonly kind: 'attribute'; readonly at: number; readonly to: number; readonly value: string | undefined };

const at = fc.nat(10_000);
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constantFrom('drop', 'duplicate', 'move', 'swap'), at, to: at }),
  fc.record({
    kind: fc.constant('attribute' as const),
    at,
    to: at,
    value: fc.oneof(
      fc.constantFrom(
        undefined,
        '',
        '-1',
        '0',
        '1',
        '99999999999999999999',
        '0x',
        'nan',
        '0000:01:00.0',
        '0x030200',
        '0x068000',
        '0x060400',
        '8 GT/s',
      ),
      fc.string({ maxLength: 12 }),
    ),
  }),
);

/** Changes a tree as a careless editor would. */
function mutate(root: XmlElement, mutations: readonly Mutation[]): void {
  for (const change of mutations) {
    const elements = [...descendants(root)].slice(1);
    const element = elements[change.at % elements.length];
    const other = elements[change.to % elements.length];
    if (element === undefined || other === undefined) return;
    if (change.kind === 'attribute') {
      const name = [...element.attributes.keys()][change.to % Math.max(1, element.attributes.size)];
      if (name === undefined) continue;
      if (change.value === undefined) element.attributes.delete(name);
      else element.attributes.set(name, change.value);
    } else if (change.kind === 'drop') {
      detach(element);
    } else if (change.kind === 'duplicate') {
      cloneElement(element, other);
    } else if (change.kind === 'swap') {
      other.attributes.set('busid', element.attributes.get('busid') ?? '0000:01:00.0');
    } else if (![...descendants(element)].includes(other)) {
      detach(element);
      element.parent = other;
      other.children.push(element);
    }
  }
}

describe('a damaged topology', () => {
  it('gives a system or an error that names the fault, never another error', () => {
    fc.assert(
      fc.property(randomMachine, fc.array(mutation, { minLength: 1, maxLength: 6 }), fc.boolean(), (xml, mutations, merge) => {
        const root = parseXml(xml).root;
        mutate(root, mutations);
        try {
          const fused = fuseTopologies([root, root]) ?? root;
          if (merge) mergeNics(fused, parametersWith({ netMergeLevel: 9 }));
          for (const tree of [root, fused]) localSystems(build(tree), defaultParameters, 16);
        } catch (error) {
          if (!(error instanceof InputError)) throw error;
          expect(error.message).not.toBe('');
        }
      }),
      { numRuns: runs(80, 150) },
    );
  });
});
