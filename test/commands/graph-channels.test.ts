import { describe, expect, it } from 'vitest';
import { planForRank } from '../../src/planner/plan/rank-plan.js';
import { planFromJson } from '../../src/planner/plan/plan-json.js';
import { tccl } from './in-process.js';

describe('tccl graph: channels through all ranks', () => {
  it('are printed in the lines that NCCL writes', async () => {
    const { code, stdout } = await tccl(['graph', 'pcie-2-l40s', '--nodes', '2', '--ranks', '0,2-3']);
    expect(code).toBe(0);
    expect(stdout.split('\n')).toEqual(
      expect.arrayContaining([
        '4 ranks on 2 nodes',
        'Channel 00/02 : 0 1 2 3',
        'Channel 01/02 : 0 1 2 3',
        'Trees [0] 1/2/-1->0->-1 [1] 1/-1/-1->0->2',
        'Trees [0] 3/-1/-1->2->0 [1] 3/0/-1->2->-1',
        'Trees [0] -1/-1/-1->3->2 [1] -1/-1/-1->3->2',
      ]),
    );
    expect(stdout).not.toContain('->1->');
  });

  it('are cut as NCCL cuts them, or whole', async () => {
    const cut = await tccl(['graph', 'pcie-2-l40s', '--nodes', '50']);
    expect(cut.stdout).toMatch(/^Channel 00\/02 : {2}0 {2}1 {2}2 .{90,}\.\.\.$/m);
    const whole = await tccl(['graph', 'pcie-2-l40s', '--nodes', '50', '--whole']);
    expect(whole.stdout).toMatch(/^Channel 00\/02 : .* 98 99$/m);
  });

  it('as JSON are a plan that can be read again', async () => {
    const { stdout } = await tccl(['graph', 'pcie-2-l40s', '--nodes', '3', '--json']);
    const { plan } = JSON.parse(stdout) as { plan: unknown };
    expect(planForRank(planFromJson(plan), 5).channels[0]?.ring).toMatchObject({ prev: 4, next: 0 });
  });

  it('are refused for contradictory variables, unless --follow-nccl is given', async () => {
    const env = { NCCL_MIN_NCHANNELS: '6', NCCL_MAX_NCHANNELS: '1' };
    const refused = await tccl(['graph', 'pcie-2-l40s', '--nodes', '2'], { env });
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(
      'NCCL_MIN_NCHANNELS=6 is above NCCL_MAX_NCHANNELS=1: NCCL would take at most 1 channel, then copy them until there are 6',
    );
    const followed = await tccl(['graph', 'pcie-2-l40s', '--nodes', '2', '--follow-nccl'], { env });
    expect(followed.stdout).toContain('6 coll channels, 6 collnet channels, 0 nvls channels');
  });

  it('are refused for ranks that do not exist', async () => {
    const { code, stderr } = await tccl(['graph', 'pcie-2-l40s', '--ranks', '0-2']);
    expect(code).toBe(2);
    expect(stderr).toBe("tccl: --ranks '0-2' must be all, or ranks from 0 to 1 as in 0-7,12\n");
  });
});
