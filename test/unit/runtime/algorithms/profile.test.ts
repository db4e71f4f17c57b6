import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { defaultTable } from '../../../../src/runtime/algorithms/choose-algorithm.js';
import { defaultProfile } from '../../../../src/runtime/algorithms/default-profile.js';
import { explainCall } from '../../../../src/runtime/communicator/explain.js';
import type { Channels } from '../../../../src/runtime/algorithms/connections/channels.js';
import {
  machineName,
  profileFor,
  profilePath,
  readProfile,
  tableOf,
  timeAt,
  timesFor,
  type Profile,
} from '../../../../src/runtime/algorithms/profile.js';

const directory = mkdtempSync(join(tmpdir(), 'tccl-profile-'));
afterAll(() => rmSync(directory, { recursive: true }));

const made: Profile = {
  format: 'tccl profile',
  formatVersion: 1,
  machine: 'made',
  cores: 4,
  times: {
    2: {
      allReduce: {
        direct: [
          [8, 1],
          [512, 4],
          [32_768, 90],
        ],
        ring: [
          [8, 3],
          [512, 3.9],
          [32_768, 40],
        ],
      },
    },
    8: { allReduce: { direct: [[8, 100]] } },
  },
};
const usual = defaultTable({ nRanks: 2, oneSegment: true, forced: undefined });

function file(name: string, content: string): NodeJS.ProcessEnv {
  const path = join(directory, name);
  writeFileSync(path, content);
  return { TCCL_PROFILE: path };
}

describe('a profile', () => {
  it('is read from TCCL_PROFILE, or else from the user’s configuration, if it exists', () => {
    expect(readProfile(file('good.json', JSON.stringify(made)))).toEqual(made);
    expect(profilePath({ XDG_CONFIG_HOME: '/config' })).toBe('/config/tccl/profile.json');
    expect(readProfile({ XDG_CONFIG_HOME: join(directory, 'empty') })).toBeUndefined();
    expect(() => readProfile({ TCCL_PROFILE: join(directory, 'missing') })).toThrow(/TCCL_PROFILE names cannot be read: ENOENT/);
  });

  it.each([
    ['no JSON', 'x', /not a profile that this version can read/],
    ['another file', '{"format":"tccl plan"}', /does not begin with "format": "tccl profile"/],
    ['an unknown collective', JSON.stringify({ ...made, times: { 2: { allreduce: {} } } }), /allreduce is not a collective/],
    [
      'an unknown algorithm',
      JSON.stringify({ ...made, times: { 2: { allReduce: { rnig: [[8, 1]] } } } }),
      /rnig is not an algorithm/,
    ],
    ['no number of ranks', JSON.stringify({ ...made, times: { two: {} } }), /times\.two is not a number of ranks/],
    ['a list of times', JSON.stringify({ ...made, times: [] }), /machine, cores or times are missing/],
    ['an empty number of ranks', JSON.stringify({ ...made, times: { 2: null } }), /times\.2 is not an object/],
    [
      'no list of points',
      JSON.stringify({ ...made, times: { 2: { allReduce: { ring: [8] } } } }),
      /times\.2\.allReduce\.ring is not a list/,
    ],
    [
      'sizes that fall',
      JSON.stringify({
        ...made,
        times: {
          2: {
            allReduce: {
              ring: [
                [8, 1],
                [8, 2],
              ],
            },
          },
        },
      }),
      /times\.2\.allReduce\.ring is not a list/,
    ],
  ])('that is %s is refused', (name, content, message) => {
    expect(() => readProfile(file(`${name}.json`, content))).toThrow(message);
  });

  it('of another machine is ignored, or used if TCCL_PROFILE names it, with a note', () => {
    expect(profileFor(file('here.json', JSON.stringify({ ...made, machine: machineName() })))).toMatchObject({
      profile: { machine: machineName() },
    });
    const named = profileFor(file('there.json', JSON.stringify(made)), 'this one');
    expect(named).toEqual({
      profile: made,
      doubt: expect.stringMatching(
        /there\.json was measured on another machine \(made; this is this one\) and is used nevertheless: tccl tune/,
      ) as string,
    });
    mkdirSync(join(directory, 'home', 'tccl'), { recursive: true });
    writeFileSync(join(directory, 'home', 'tccl', 'profile.json'), JSON.stringify(made));
    expect(profileFor({ XDG_CONFIG_HOME: join(directory, 'home') })).toEqual({
      profile: undefined,
      doubt: expect.stringContaining('and is not used') as string,
    });
  });

  it('has no times of crowded ranks where none were measured', () => {
    const { 8: crowded, ...times } = made.times;
    expect(crowded).toBeDefined();
    expect(timesFor({ ...made, times }, 8, 4)).toBeUndefined();
  });

  it('gives the times of the nearest number of ranks, crowded or not', () => {
    expect(timesFor(made, 3, 4)).toBe(made.times[2]);
    expect(timesFor(made, 5, 4)).toBe(made.times[8]);
    expect(timesFor(made, 4, 4)).toBe(made.times[2]);
    expect(timesFor({ ...made, times: {} }, 2, 4)).toBeUndefined();
  });

  it('changes the table only where another algorithm was measurably faster', () => {
    const table = tableOf(made.times[2]!, usual, () => true);
    // At 512 B ring is faster by less than measurements differ; between 512 B and 32 KiB the change is in the middle.
    expect(table.allReduce).toEqual([
      { algorithm: 'direct', upToBytes: Math.floor(Math.sqrt(512 * 32_768)) },
      { algorithm: 'ring', upToBytes: Infinity },
    ]);
    expect(table.broadcast).toEqual(usual.broadcast);
    expect(tableOf(made.times[2]!, usual, (algorithm) => algorithm === 'direct')).toEqual(usual);
  });
});

describe('predicted times', () => {
  const points = made.times[2]!.allReduce!.direct!;

  it('equal the measurements, are interpolated in logarithms, and have the same bandwidth beyond', () => {
    expect(timeAt(points, 8)).toBe(1);
    expect(timeAt(points, 512)).toBeCloseTo(4);
    expect(timeAt(points, 64)).toBeCloseTo(2);
    expect(timeAt(points, 1)).toBe(1);
    expect(timeAt(points, 65_536)).toBe(180);
    expect(timeAt([], 8)).toBe(Infinity);
  });

  it('are part of explain()', () => {
    const explained = {
      network: 'sockets',
      times: made.times[2]!,
      measured: 'here',
      forced: undefined,
      nRanks: 2,
      smallBytes: 256,
      lowLatencyBytes: 256,
      channels: 1,
      rings: undefined,
    } as const;
    expect(explainCall('allReduce', 8, { ...explained, table: usual })).toEqual({
      collective: 'allReduce',
      bytes: 8,
      algorithm: 'direct',
      protocol: 'LL',
      channels: 1,
      rings: undefined,
      predictedUs: 1,
      measured: 'here',
      candidates: [
        { algorithm: 'direct', predictedUs: 1 },
        { algorithm: 'ring', predictedUs: 3 },
      ],
      text: 'allReduce of 8 bytes takes direct (LL, 1 channel), about 1.00 µs as measured on this host; ring 3.00 µs',
    });
    expect(() => explainCall('allReduce', 1.5, { ...explained, table: usual })).toThrow('pass a whole number of bytes from 0');
    expect(() => explainCall('allreduce' as 'allReduce', 8, { ...explained, table: usual })).toThrow(
      /^explain: there is no collective "allreduce"; did you mean allReduce\?$/,
    );
    expect(explainCall('gather', 4096, { ...explained, table: usual })).toMatchObject({
      algorithm: 'direct',
      protocol: 'Simple',
      predictedUs: undefined,
      candidates: [],
    });
    const forced = defaultTable({ nRanks: 2, oneSegment: true, forced: 'ring' });
    expect(explainCall('allReduce', 256, { ...explained, table: forced }).protocol).toBe('LL');
    expect(explainCall('allReduce', 0, { ...explained, lowLatencyBytes: -1, table: forced }).protocol).toBe('Simple');
    expect(explainCall('allReduce', 512, { ...explained, table: forced, forced: 'ring' }).text).toContain(
      'takes ring (Simple, 1 channel), which is forced, about 3.90 µs',
    );
    expect(explainCall('allReduce', 512, { ...explained, table: forced, times: undefined, network: 'UCX' }).text).toBe(
      'allReduce of 512 bytes takes ring (Simple, 1 channel); how long calls take over UCX was never measured',
    );
  });

  it('are followed by the NICs between hosts', () => {
    const nic = (name: string) => ({ dev: 0, name, host: '10.0.0.1', netmask: '255.255.255.0' });
    const ring = (name: string) => ({ order: [0, 1, 2, 3], nics: Array.from({ length: 4 }, () => nic(name)) });
    const hosts = [
      [0, 1],
      [2, 3],
    ];
    const rings = { hosts, rings: [ring('eth0'), ring('eth1'), ring('eth2')], unplanned: undefined } as unknown as Channels;
    const explained = {
      table: defaultTable({ nRanks: 4, oneSegment: false, forced: 'hierarchical' }),
      network: 'sockets',
      times: undefined,
      measured: 'elsewhere',
      forced: undefined,
      nRanks: 4,
      smallBytes: 256,
      lowLatencyBytes: -1,
      channels: 1,
      rings,
    } as const;
    expect(explainCall('allReduce', 2 ** 20, explained)).toMatchObject({
      channels: 2,
      text: 'allReduce of 1048576 bytes takes hierarchical (Simple, 2 channels); how long calls take over sockets was never measured; between hosts over eth0, eth1',
    });
  });

  it('have defaults for ranks with and without a core each', () => {
    for (const nRanks of [2, 4, 8, 100])
      expect(timeAt(timesFor(defaultProfile, nRanks, 2)?.allReduce?.direct ?? [], 8)).toBeLessThan(Infinity);
  });
});
