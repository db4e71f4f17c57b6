import { afterEach, describe, expect, it } from 'vitest';
import { commandSource } from '../../src/cli/watch/source.js';
import { askRas, rasAddress } from '../../src/cli/watch/ras-client.js';
import { type Manners, RasServer } from './ras-server.js';
import { watch } from './watching.js';

const servers: RasServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function served(manners: Partial<Manners>): Promise<{ readonly server: RasServer; readonly address: string }> {
  const communicators = (n: number) => [
    { hash: '0xfa93daea854b060b', ranks: [0, 1].map((rank) => ({ rank, counts: { AllReduce: 640 + n } })) },
  ];
  const server = new RasServer({ version: '2.30.7', communicators, ...manners });
  servers.push(server);
  return { server, address: await server.listen() };
}

/** The client waits for 5 s, and for the time that RAS may take to collect. */
const atOnce = { timeout: 0 };

describe('tccl watch of processes that are slow to answer', () => {
  it('does not take a process for ended that keeps the connection open without an answer', async () => {
    const stopped = await served({ muteAfter: 2 });
    const mute = await served({ muteAfter: 0 });
    const { signal } = new AbortController();
    const refusal = (asked: Promise<unknown>) => asked.then(String, (error: unknown) => (error as Error).message);
    const [{ code, stdout }, refused, refusedByCommand] = await Promise.all([
      watch([stopped.address], { ...atOnce, samples: Infinity, untilStuck: 1, stuckAfter: 60_000 }),
      refusal(askRas(rasAddress(mute.address), 0, signal)),
      refusal(commandSource('exec sleep 1000', '', 0).ask(signal)),
    ]);
    const words = 'no answer within 5 s: the process is stopped, or it is not RAS that listens there';
    expect(refused).toBe(`${mute.address}: ${words}`);
    expect(refusedByCommand).toBe('`exec sleep 1000` did not end within 5 s; --timeout gives it longer');
    expect(stdout).toContain('healthy');
    expect(stdout.split('\n').filter((line) => line.includes(`${stopped.address}: ${words}`))).toHaveLength(1);
    expect(stdout).not.toContain('has ended');
    expect(code).toBe(1);
  });

  it('asks such a process last', async () => {
    const stopped = await served({ muteAfter: 1 });
    const well = await served({});
    const { code, stdout } = await watch([stopped.address, well.address], { ...atOnce, samples: 6 });
    expect(stdout).toContain('healthy');
    expect(code).toBe(0);
    expect(stopped.server.received.filter((command) => command === 'CLIENT PROTOCOL 2').length).toBeLessThanOrEqual(3);
    expect(well.server.received.filter((command) => command === 'VERBOSE STATUS')).toHaveLength(6);
  });

  it('says once that reports take longer than the time between them', async () => {
    const { address } = await served({});
    const slow = await watch([address], { every: 0.001, samples: 3 });
    expect(slow.stdout.split('\n').filter((line) => line.includes('a report took'))).toHaveLength(1);
    expect(slow.stdout).toMatch(/: a report took .*, longer than --every .*: reports come less often/);
    expect((await watch([address], { every: 3_600_000, samples: 1 })).stdout).not.toContain('a report took');
  });
});
