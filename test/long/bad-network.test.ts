import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeRelayedHosts, whyNoRelay, type RelayedHosts, type Way } from '../multi-host/relayed-hosts.js';
import { StandingRanks } from '../multi-host/standing-ranks.js';

const reason = whyNoRelay();
/** Of the random calls; TCCL_TEST_SEED repeats a run that failed. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));

const networks: readonly { readonly name: string; readonly ways: readonly [Way, Way] }[] = [
  { name: 'far', ways: [{ delayMs: 5 }, { delayMs: 5 }] },
  { name: 'lossy', ways: [{ loss: 0.03 }, { loss: 0.01 }] },
  {
    name: 'disorderly',
    ways: [
      { reorder: 0.2, duplicate: 0.05, holdMs: 3 },
      { reorder: 0.2, duplicate: 0.05, holdMs: 8 },
    ],
  },
  { name: 'narrow in one direction', ways: [{ mbitPerS: 50, queueBytes: 32 * 1024 }, { mbitPerS: 1000 }] },
  {
    name: 'all of it',
    ways: [
      { delayMs: 1, loss: 0.01, reorder: 0.05, duplicate: 0.01 },
      { delayMs: 0.3, mbitPerS: 100 },
    ],
  },
];

const forms = [
  ['promises', { TCCL_TEST_CONFIG: '{}' }],
  ['blocking', { TCCL_TEST_CONFIG: '{"blocking":true}' }],
  ['an engine thread', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
] as const;

describe.skipIf(reason !== undefined)(
  `random calls on a bad network${reason === undefined ? '' : ` (skipped: ${reason})`}`,
  () => {
    let hosts: RelayedHosts;
    let ranks: StandingRanks;
    beforeAll(async () => {
      hosts = await makeRelayedHosts();
      ranks = new StandingRanks(hosts.on, hosts.root, 30111);
    });
    afterAll(() => {
      ranks.stop();
      hosts.remove();
    });

    it.each(networks.flatMap(({ name, ways }) => forms.map(([form, env]) => ({ name, ways, form, env }))))(
      'match a naive reference: $name, $form',
      async ({ ways, form, env }) => {
        await hosts.set(...ways);
        const flags = form === 'promises' ? ['--promises'] : [];
        const programs = [
          { program: 'random-collectives.mjs', args: ['--seed', String(seed), '--calls', '40', ...flags] },
          // An engine thread carries collectives only, so messages cannot block.
          { program: 'random-messages.mjs', args: [String(seed), '10', ...(form === 'blocking' ? [] : ['promises'])] },
          { program: 'windows.mjs', args: ['random', String(seed)] },
          { atOnce: 10 },
        ];
        for (const each of programs)
          for (const outcome of await Promise.all(ranks.begin(each, () => env).ended))
            expect(outcome, `seed ${seed}`).toMatchObject({ code: 'none' });
      },
    );
  },
);
