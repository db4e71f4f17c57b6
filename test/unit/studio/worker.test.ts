import { describe, expect, it } from 'vitest';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import type { OpenFile, Reply } from '../../../src/studio/messages.js';
import { stateOf, viewNames } from '../../../src/studio/state.js';
import { serve } from '../../../src/studio/worker.js';
import { lstopoXml } from '../planner/evidence/print-tools.js';

/** Sends a state to a worker, and gives its replies up to the last. */
function worker() {
  let done = () => {};
  let replies: Reply[] = [];
  const answer = serve((reply) => {
    replies.push(reply);
    if (reply.kind === 'error' || (reply.kind === 'shown' && reply.isLast)) done();
  });
  return async (fragment: string, files: readonly OpenFile[] = []): Promise<readonly Reply[]> => {
    replies = [];
    const ended = new Promise<void>((resolve) => (done = resolve));
    answer({ id: 1, state: stateOf(fragment), width: undefined, files });
    await ended;
    return replies;
  };
}

describe('the worker of the studio', () => {
  it('makes the view that is looked at, and no other', async () => {
    const ask = worker();
    for (const view of viewNames) {
      const [reply] = await ask(`machine=hgx-a100-4&nodes=2&view=${view}`);
      expect(reply?.kind === 'shown' && reply.shown.plan?.title).toBe('2 x hgx-a100-4');
      expect(reply?.kind === 'shown' ? reply.shown.part?.view : reply).toBe(view === 'log' ? undefined : view);
    }
  });

  it('sends the views before the answer, and keeps both', async () => {
    const ask = worker();
    const fragment = 'machine=hgx-a100-4&nodes=2&ask=what+limits';
    const replies = await ask(fragment);
    expect(replies.map((reply) => reply.kind === 'shown' && [reply.shown.answer !== undefined, reply.isLast])).toEqual([
      [false, false],
      [true, true],
    ]);
    const again = await ask(`${fragment}&view=matrix`);
    expect(again).toHaveLength(1);
  });

  it('plans again for another file of the same name', async () => {
    const ask = worker();
    const file = (key: number, text: string): OpenFile => ({ key, name: 'a.yaml', blob: new Blob([text]) });
    const titles = [];
    for (const each of [file(1, 'machines: dgx-a100:2\n'), file(2, 'machines: dgx-a100:3\n')]) {
      const [reply] = await ask('file=a.yaml', [each]);
      titles.push(reply?.kind === 'shown' ? reply.shown.plan?.title : reply);
    }
    expect(titles).toEqual(['2 x dgx-a100', '3 x dgx-a100']);
  });

  it('refuses another number of hosts than a file has', async () => {
    const files = [{ key: 1, name: 'a.yaml', blob: new Blob(['machines: dgx-a100:2\n']) }];
    const ask = worker();
    for (const nodes of ['', '&nodes=1', '&nodes=2']) {
      const [reply] = await ask(`file=a.yaml${nodes}`, files);
      expect(reply?.kind === 'shown' && [reply.shown.plan?.ownCount, reply.shown.plan?.title]).toEqual([2, '2 x dgx-a100']);
    }
    const refused = 'a.yaml has 2 hosts by itself, and cannot be taken 5 times';
    expect((await ask('file=a.yaml&nodes=5', files)).at(-1)).toMatchObject({ kind: 'error', message: refused });
    const compared = await ask('machine=dgx-a100&nodes=4&view=changes&against=a.yaml', files);
    expect(compared.at(-1)).toMatchObject({
      kind: 'shown',
      shown: { part: { changes: { from: expect.stringMatching(/^2 x dgx-a100/) as string } } },
    });
  });

  it('finds faults of a cluster, of which its machines have none', async () => {
    const part = async (fragment: string) => {
      const [reply] = await worker()(fragment);
      return reply?.kind === 'shown' && reply.shown.part?.view === 'cluster' ? reply.shown.part : undefined;
    };
    const edit = 'machine=dgx-h100&nodes=3&view=cluster&nic-off=mlx5_1';
    expect((await part(edit))?.findings.map(({ problem }) => problem)).toEqual([]);
    const [finding] = (await part(`${edit}&edited=first`))?.findings ?? [];
    expect(finding?.problem).toBe('hosts have different numbers of NICs: dgx-h100 (changed) 7, dgx-h100 8');
    expect(finding?.why).toMatch(/GB\/s of bus bandwidth/);
  });

  it('says what is assumed, with the controls of the page', async () => {
    const text = '\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n';
    const files = [{ key: 1, name: 'topo.txt', blob: new Blob([text]) }];
    const [reply] = await worker()('file=topo.txt', files);
    const plan = reply?.kind === 'shown' ? reply.shown.plan : undefined;
    expect(plan?.assumed.command).toBe('tccl topo detect -o machine.xml');
    expect(plan?.assumed.facts.join()).toMatch(/^GPUs are .*: say otherwise with the field «Hardware», as "2 x .*"/);
    expect(JSON.stringify(plan)).not.toContain('--');
    const [described] = await worker()('file=topo.txt&hardware=2+x+L40S', files);
    const facts = described?.kind === 'shown' ? (described.shown.plan?.assumed.facts ?? []) : [];
    expect(facts.join()).not.toMatch(/GPUs are/);
    const [wrong] = await worker()('file=topo.txt&hardware=3+x+L40S', files);
    expect(wrong?.kind === 'shown' && wrong.shown.unplanned).toMatch(
      /the matrix has 2 GPUs, and the field «Hardware» describes 3/,
    );
  });

  it('names the file of each fault, where there are several files', async () => {
    const log = (name: string, line: string): OpenFile => ({
      key: name.length,
      name,
      blob: new Blob([`host1:10:10 [0] ${line}\n`]),
    });
    const files = [
      log('a.log', 'NCCL WARN NET/IB : Unable to open device mlx5_0'),
      log('other.log', "NCCL WARN Cuda failure 2 'out of memory'"),
    ];
    const [reply] = await worker()('file=a.log&view=log', files);
    const shown = reply?.kind === 'shown' ? reply.shown.log : undefined;
    expect([shown?.where, ...(shown?.also ?? []).map(([file]) => file)].sort()).toEqual(['a.log', 'other.log']);
    const [one] = await worker()('file=a.log&view=log', files.slice(0, 1));
    expect(one?.kind === 'shown' && [one.shown.log?.where, one.shown.log?.also]).toEqual(['', []]);
  });

  it('names the likely causes of several jobs in one file', async () => {
    const lines = [
      'host1:10:10 [0] NCCL WARN NET/IB : Unable to open device mlx5_0',
      "host9:10:10 [0] NCCL WARN Cuda failure 2 'out of memory'",
    ];
    const [reply] = await worker()('file=all.log&view=log', [{ key: 1, name: 'all.log', blob: new Blob([lines.join('\n')]) }]);
    const log = reply?.kind === 'shown' ? reply.shown.log : undefined;
    expect([['', log?.verdict], ...(log?.also ?? [])]).toEqual([
      ['', expect.stringContaining('host9')],
      ['', expect.stringContaining('host1')],
    ]);
  });

  it('plans the machine of the XML of lstopo', async () => {
    const blob = new Blob([lstopoXml(machine('pcie-8-a6000'))]);
    const [reply] = await worker()('file=host.xml', [{ key: 1, name: 'host.xml', blob }]);
    expect(reply?.kind === 'shown' ? reply.shown.plan?.title : reply).toBe('the machine in host.xml');
  });

  it('shows a line of tccl inspect as an incident: the last one of several', async () => {
    const line = (state: string, causes: readonly object[]) =>
      JSON.stringify({
        jobs: [
          {
            ...{ job: '488c11c4', state, stillMs: 12_000, causes, version: '0.1.0', nRanks: 2, transport: 'shared memory' },
            ranks: [
              { rank: 0, host: 'gpu1', pid: 11, process: 'sleeps', calls: 6, waits: [{ text: 'barrier, call 5, for 12 s' }] },
              { rank: 1, host: 'gpu1', pid: 12, process: 'stopped', calls: 5, lastCall: 'barrier, call 4', waits: [] },
            ],
          },
        ],
        problems: [],
      });
    const cause = { ranks: [1], waiting: [0], text: 'rank 1 is stopped', advice: 'kill -CONT 12 lets it go on' };
    const shown = async (text: string) => {
      const [reply] = await worker()('file=job.json&view=log', [{ key: 1, name: 'job.json', blob: new Blob([text]) }]);
      return reply?.kind === 'shown' ? reply.shown.log : undefined;
    };
    const log = await shown(`${line('moving', [])}\n${line('stuck', [cause])}\n`);
    expect([log?.outcome, log?.verdict, log?.open]).toEqual(['fault', 'rank 1 is stopped', ['kill -CONT 12 lets it go on']]);
    expect(log?.ranks.map(({ title }) => title)).toEqual([
      'rank 0 waits for rank 1',
      'Calls of the ranks of job 488c11c4: rank 1 after barrier, call 4; rank 0 in barrier, call 5, for 12 s',
    ]);
    const healthy = await shown(line('moving', []));
    expect([healthy?.outcome, healthy?.ranks]).toEqual(['healthy', []]);
    const { jobs, problems } = JSON.parse(line('stuck', [cause])) as { jobs: object[]; problems: string[] };
    const several = [...jobs, { ...jobs[0], job: '5a' }, { ...jobs[0], job: '5b', state: 'moving', causes: [] }];
    const named = await shown(JSON.stringify({ jobs: several, problems }, undefined, 2));
    expect([named?.where, named?.verdict, named?.also]).toEqual([
      ...['job 488c11c4', 'rank 1 is stopped'],
      [['job 5a', 'rank 1 is stopped']],
    ]);
    expect(await shown('{"jobs":[{"job":"x","ranks":[null],"causes":[]}],"problems":[]}')).toBeUndefined();
  });

  it.each([
    ['text', '23:16:44 job 1 (16 ranks, NCCL 2.29.2): unknown: the first report; the next one shows what moves\n'],
    ['a line of JSON', '{"time":"2026-11-29T08:00:00.000Z","job":1,"source":"gpu1","state":"stuck","ranks":16}\n'],
    ['lines of JSON', '{"time":"2026-11-29T08:00:00.000Z","source":"gpu1","error":"refused"}\n'.repeat(3)],
  ])('names the output of tccl watch, and the file to open instead: %s', async (_, text) => {
    const files = [{ key: 1, name: 'watched.txt', blob: new Blob([text]) }];
    const [reply] = await worker()('file=watched.txt', files);
    expect(reply?.kind === 'error' && reply.message).toMatch(
      /^watched\.txt: is the output of tccl watch.*tccl watch --record FILE/,
    );
  });

  describe('with profiles of PyTorch', () => {
    const profile = (rank: number, worldSize: number, ...calls: readonly (readonly [start: number, end: number])[]): OpenFile => {
      const text = JSON.stringify({
        distributedInfo: { rank, world_size: worldSize, nccl_version: '2.27.5' },
        traceEvents: calls.map(([ts, end]) => ({
          ...{ ph: 'X', cat: 'kernel', name: 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', ts, dur: end - ts },
          args: {
            ...{ stream: 7, 'Collective name': 'allreduce', 'In msg nelems': 1 << 20, 'Out msg nelems': 1 << 20, dtype: 'Float' },
            ...{ 'Group size': worldSize, 'Process Group Name': '0', 'Process Group Ranks': [...Array(worldSize).keys()] },
          },
        })),
      });
      return { key: rank + 1, name: `rank${rank}.json`, blob: new Blob([text]) };
    };
    const logOf = (replies: readonly Reply[]) => {
      const reply = replies.at(-1);
      return reply?.kind === 'shown' ? reply.shown.log : undefined;
    };

    it('shows what tccl replay prints', async () => {
      const files = [profile(0, 2, [0, 130], [500, 630]), profile(1, 2, [1050, 1130], [1550, 1630])];
      const log = logOf(await worker()('machine=dgx-h100&file=rank1.json&view=log', files));
      expect(log).toMatchObject({
        outcome: 'replayed',
        verdict: expect.stringMatching(/^step measured 630 us, replayed /) as string,
      });
      expect(log?.replay?.summary).toEqual([
        ['dgx-h100', 'NCCL 2.27.5; 2 ranks, 2 calls of 1 communicator, traces of 2 ranks'],
        ['step', expect.stringMatching(/^measured 630 us/)],
        ['calls', expect.stringMatching(/^measured 160 us from the last rank's start on, predicted/)],
        ['waits', 'ranks wait 100 us in calls, all together; 100 us of it for rank 1, which comes last to 2 of 2 calls'],
      ]);
      expect(log?.replay?.calls?.rows).toEqual([expect.arrayContaining(['allreduce', '4 MiB', '80.0 us'])]);
      expect(log?.replay?.ranks?.rows.map(([rank, step]) => [rank, step])).toEqual([
        ['0', '630 us'],
        ['1', '580 us'],
      ]);
    });

    it('says how many hosts are missing, and replays on as many', async () => {
      const ask = worker();
      const files = [profile(0, 16, [0, 130])];
      const few = logOf(await ask('machine=dgx-h100&file=rank0.json&view=log', files));
      expect(few?.outcome).toBe('undecided');
      expect(few?.verdict).toContain('the traces are of 16 ranks; dgx-h100 has 8: name as many hosts');
      const enough = logOf(await ask('machine=dgx-h100&nodes=2&nccl=2.29.7&file=rank0.json&view=log', files));
      expect(enough?.replay?.summary[0]).toEqual(['2 x dgx-h100', expect.stringMatching(/^NCCL 2\.29\.7; 16 ranks/)]);
    });
  });
});
