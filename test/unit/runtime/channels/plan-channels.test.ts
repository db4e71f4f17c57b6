import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Bootstrap } from '../../../../src/runtime/bootstrap/bootstrap.js';
import { planChannels, type ChannelPlan, type TopologyFiles } from '../../../../src/runtime/channels/plan-channels.js';
import type { RankLocation } from '../../../../src/runtime/channels/location.js';
import { ranksByHost } from '../../../../src/runtime/algorithms/connections/data-host.js';
import { rejection, withRanks } from '../bootstrap/ranks.js';
import { madeTopology } from './made-topology.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-plan-'));
afterAll(() => rmSync(folder, { recursive: true }));
const noFiles = { topology: undefined, topologyDump: undefined, graphDump: undefined };
const hostOf = (rank: number) => ({ hostId: `host ${rank % 2}` });

/** NICs named as interfaces of this machine, with addresses of a made host. */
const locationOn = (host: number, nics = 1): RankLocation => ({
  numaNode: 0,
  nics: Array.from({ length: nics }, (_, nic) => ({
    name: Object.keys(networkInterfaces())[nic] ?? 'lo',
    host: `10.9.${nic}.${host + 1}`,
    netmask: '255.255.255.0',
  })),
  nicsNamed: false,
});

/** Plans on all ranks. @param filesOf files of each rank */
function planAll(
  ranks: readonly Bootstrap[],
  locations: readonly (RankLocation | undefined)[],
  filesOf: (rank: number) => TopologyFiles,
): Promise<ChannelPlan>[] {
  return ranks.map((bootstrap, rank) =>
    planChannels({ bootstrap, locations, hosts: ranksByHost(bootstrap), files: filesOf(rank), triesNics: false }),
  );
}

test('detected hosts get rings in which the ranks of a host are consecutive', async () => {
  await withRanks(
    4,
    async (ranks) => {
      const locations = ranks.map((_, rank) => locationOn(rank % 2));
      const plans = await Promise.all(planAll(ranks, locations, () => noFiles));
      for (const { channels } of plans) {
        expect(channels).toEqual(plans[0]!.channels);
        expect(channels.unplanned).toBeUndefined();
        expect(channels.order).toEqual([0, 2, 1, 3]);
        expect(channels.hosts).toEqual([[0, 2], [1, 3]]); // prettier-ignore
      }
      // Only the lowest rank of a host has searched it.
      expect(plans.map(({ lines }) => lines.length > 0)).toEqual([true, true, false, false]);
    },
    hostOf,
  );
});

test('a host that cannot be planned gives all ranks one ring in rank order, and the reason', async () => {
  await withRanks(
    4,
    async (ranks) => {
      // Rank 1's host has no known NIC.
      const locations = ranks.map((_, rank) => locationOn(rank % 2, rank % 2 === 1 ? 0 : 1));
      const plans = await Promise.all(planAll(ranks, locations, () => noFiles));
      for (const { channels } of plans) {
        expect(channels).toMatchObject({ order: [0, 2, 1, 3], rings: [{ order: [0, 2, 1, 3], nics: [] }], ringOfChannel: [0] });
        expect(channels.unplanned).toMatch(new RegExp(`^host ${hostname()} cannot be planned: .*network`));
      }
    },
    hostOf,
  );
});

test.each([
  ['is missing', undefined, 'FILE', /no such file/],
  ['is no XML', '<system', 'SYNTAX', /./],
  ['has no NIC', madeTopology([{ devs: [0, 1] }]), 'NO_PATH', /network/],
])('a topology file that %s is refused on all ranks, with the file and its rank', async (what, text, code, message) => {
  const file = join(folder, `${what}.xml`);
  if (text !== undefined) writeFileSync(file, text);
  await withRanks(
    4,
    async (ranks) => {
      const locations = ranks.map((_, rank) => locationOn(rank % 2));
      const plans = planAll(ranks, locations, (rank) => (rank === 1 ? { ...noFiles, topology: file } : noFiles));
      for (const [rank, error] of (await Promise.all(plans.map(rejection))).entries()) {
        expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string });
        if (rank === 1) expect(error).toMatchObject({ file });
        else expect(error).toMatchObject({ rank: 1, message: expect.stringContaining(file) as string });
      }
    },
    hostOf,
  );
});

test('a dump that cannot be written is refused on all ranks; hosts of one file system write two files', async () => {
  const dump = join(folder, 'dump.xml');
  await withRanks(
    2,
    async (ranks) => {
      const locations = ranks.map((_, rank) => locationOn(rank));
      await Promise.all(planAll(ranks, locations, () => ({ ...noFiles, topologyDump: dump })));
      const texts = [dump, join(folder, `dump.${hostname()}.xml`)].map((file) => readFileSync(file, 'utf8'));
      for (const [rank, text] of texts.entries())
        expect(text).toMatch(new RegExp(`^<system version="1">[^]*<net name=[^]*<gpu [^>]* rank="${rank}"`));
      const broken = planAll(ranks, locations, (rank) =>
        rank === 1 ? { ...noFiles, topologyDump: join(folder, 'missing/dump.xml') } : noFiles,
      );
      const [first, second] = await Promise.all(broken.map(rejection));
      expect(second).toMatchObject({ code: 'FILE', message: expect.stringContaining('TCCL_TOPO_DUMP_FILE') as string });
      expect(first).toMatchObject({ code: 'FILE', rank: 1 });
    },
    hostOf,
  );
});
