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
  });
});
