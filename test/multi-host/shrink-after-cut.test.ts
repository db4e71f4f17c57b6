import { afterEach, describe, expect, it } from 'vitest';
import { startFixture } from '../multi-process/fixtures/processes.js';
import type { Fixture } from '../multi-process/fixtures/processes.js';
import { makeRails } from './rails.js';
import { makeTwoHosts, whyNoHosts } from './two-hosts.js';

const reason = whyNoHosts();

describe.skipIf(reason !== undefined)(
  `shrink() after a network failed${reason === undefined ? '' : ` (skipped: ${reason})`}`,
  () => {
    const started: Fixture[] = [];
    let port = 29811;
    afterEach(() => {
      for (const { child } of started.splice(0)) child.kill('SIGKILL');
    });

    /** Starts ranks, found through the variables of Slurm. Returns the lines of each after the cut. */
    async function runRanks(
      hostOf: readonly (0 | 1)[],
      on: readonly (readonly string[])[],
      env: Record<string, string>,
      options: object,
      cut: () => void,
    ): Promise<Record<string, unknown>[][]> {
      const ranks = hostOf.map((host, rank) => {
        const variables = {
          SLURM_PROCID: String(rank),
          SLURM_NTASKS: String(hostOf.length),
          SLURM_LOCALID: String(hostOf.slice(0, rank).filter((other) => other === host).length),
          SLURM_JOB_ID: '1',
          SLURM_STEP_ID: '0',
          TCCL_HOSTID: `host ${host}`,
          TCCL_HEARTBEAT: '4',
          ...env,
        };
        const fixture = startFixture('shrinks-after-cut.mjs', [JSON.stringify(options)], variables, on[host]);
        started.push(fixture);
        return fixture;
      });
      await Promise.all(ranks.map((rank) => rank.line((line) => 'running' in line)));
      cut();
      return (await Promise.all(ranks.map(({ ended }) => ended))).map(({ lines }) => lines.slice(1));
    }

    it('continues over the remaining one of two networks, with all ranks', async () => {
      const rails = makeRails(2);
      try {
        const env = { TCCL_SOCKET_IFNAME: 'rail', TCCL_COMM_ID: `${rails.root}:${port++}` };
        const found = await runRanks([0, 0, 1, 1], rails.on, env, {}, () => rails.cut(1));
        for (const [rank, [failed, rest]] of found.entries()) {
          expect(failed?.['message'], `rank ${rank}`).toMatch(
            /^(?!.*lives, but another host).*its own interface rail1 (is down|has no link)/,
          );
          expect(failed).toMatchObject({ failed: 'NETWORK' });
          expect(rest, `rank ${rank}`).toMatchObject({ nRanks: 4, sum: 4 });
        }
      } finally {
        rails.remove();
      }
    });

    it('is refused with quorum on the smaller side only', async () => {
      const hosts = makeTwoHosts();
      try {
        const env = { TCCL_COMM_ID: `10.213.77.1:${port++}` };
        const found = await runRanks([0, 1, 1], hosts.on, env, { quorum: true }, () => hosts.cut());
        expect(found[0]?.[1]).toMatchObject({
          refused: 'NO_QUORUM',
          ranks: [1, 2],
          message: expect.stringMatching(
            /only 1 of 3 ranks remain \(0\), which is no majority\. The others may continue/,
          ) as string,
        });
        for (const rank of [1, 2]) expect(found[rank]?.[1], `rank ${rank}`).toMatchObject({ nRanks: 2, sum: 2 });
      } finally {
        hosts.remove();
      }
    });
  },
);
