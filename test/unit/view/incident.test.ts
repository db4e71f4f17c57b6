import { describe, expect, it } from 'vitest';
import { diagnoseJob } from '../../../src/planner/log/verdict/diagnosis.js';
import { NcclLogReader } from '../../../src/planner/log/job/read-log.js';
import { hostsPicture, placesOf } from '../../../src/view/incident/hosts.js';
import { lanesPicture } from '../../../src/view/incident/lanes.js';
import { rolesOf, standingsOf } from '../../../src/view/incident/standing.js';
import { drawList } from './draw-list.js';

/** Pictures of an incident whose files have these texts. */
function picturesOf(texts: readonly (readonly [name: string, text: string])[]) {
  const reader = new NcclLogReader();
  for (const [name, text] of texts) {
    reader.openFile(name);
    if (text.startsWith('{')) reader.readWhole('json', new TextEncoder().encode(text));
    else for (const line of text.split('\n')) reader.readLine(line);
  }
  const model = reader.finish();
  const { findings } = diagnoseJob(model);
  const roles = rolesOf(model, findings);
  const standings = standingsOf(model, roles);
  return {
    standings,
    lanes: standings.map((each) => lanesPicture(each)),
    hosts: hostsPicture(
      placesOf(model, findings, () => undefined),
      roles,
    ),
  };
}

function recording(rank: number, nRanks: number, late: number): readonly [string, string] {
  const entry = (sequence: number) => ({
    process_group: ['0', 'default_pg'],
    collective_seq_id: sequence,
    profiling_name: 'nccl:all_reduce',
    input_sizes: [[1024]],
    state: sequence === 41 ? 'started' : 'completed',
    is_p2p: false,
    frames: [{ name: 'step', filename: 'train.py', line: 120 }],
  });
  const ranks = `[${[...Array(nRanks).keys()].join(', ')}]`;
  return [
    `rank_${rank}.json`,
    JSON.stringify({
      version: '2.5',
      pg_config: { 0: { name: '0', ranks } },
      entries: (rank === late ? [39, 40] : [39, 40, 41]).map(entry),
    }),
  ];
}

const start = (host: string, rank: number, nRanks: number, end: boolean) =>
  [
    `${host}:1${rank}:1${rank} [${rank % 2}] NCCL INFO NCCL version 2.27.7+cuda12.8`,
    `${host}:1${rank}:1${rank} [${rank % 2}] NCCL INFO ncclCommInitRankConfig comm 0x5${rank} rank ${rank} nranks ${nRanks} cudaDev ${rank % 2} nvmlDev ${rank % 2} busId 1000 commId 0xabc - Init START`,
    ...(end
      ? [
          `${host}:1${rank}:1${rank} [${rank % 2}] NCCL INFO ncclCommInitRankConfig comm 0x5${rank} rank ${rank} nranks ${nRanks} cudaDev ${rank % 2} nvmlDev ${rank % 2} busId 1000 commId 0xabc - Init COMPLETE`,
        ]
      : []),
  ].join('\n');

describe('pictures of an incident', () => {
  it('show the rank of flight recordings that others wait for', async () => {
    const { lanes, hosts } = picturesOf(Array.from({ length: 4 }, (_, rank) => recording(rank, 4, 2)));
    await expect(
      [hosts, ...lanes].flatMap((each) => (each === undefined ? [] : [drawList(each)])).join('\n'),
    ).toMatchFileSnapshot('golden/incident-flight.txt');
  });

  it('fold the positions of 1,024 ranks to two', () => {
    const { standings, hosts } = picturesOf(Array.from({ length: 1024 }, (_, rank) => recording(rank, 1024, 700)));
    expect(standings.map(({ rows }) => rows.map(({ name, role, done, isInside }) => [name, role, done, isInside]))).toEqual([
      [
        ['rank 700', 'late', 2, false],
        ['ranks 0-699, 701-1023', 'waits', 2, true],
      ],
    ]);
    expect(hosts?.marks.length).toBeLessThan(400);
  });

  it('name the rank without a line for which init waits', () => {
    const { standings, hosts } = picturesOf([
      ['job.log', [0, 1, 2].map((rank) => start(`h${rank >> 1}`, rank, 4, false)).join('\n')],
    ]);
    expect(standings.map(({ rows }) => rows.map(({ name, role, text }) => [name, role, text]))).toEqual([
      [
        ['ranks 0-2', 'waits', 'began init'],
        ['rank 3', 'late', 'no line at all'],
      ],
    ]);
    expect(hosts?.title).toBe('ranks 0-2 wait for rank 3');
  });

  it('are none where all ranks completed init', () => {
    const { standings, hosts } = picturesOf([['job.log', [0, 1].map((rank) => start('h0', rank, 2, true)).join('\n')]]);
    expect([standings, hosts]).toEqual([[], undefined]);
  });
});
