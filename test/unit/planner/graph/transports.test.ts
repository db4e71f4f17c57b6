import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../../../src/errors.js';
import type { PlannedConnection } from '../../../../src/planner/graph/transports/connection.js';
import { NodeTransports } from '../../../../src/planner/graph/transports/node-transports.js';
import { Transports } from '../../../../src/planner/graph/transports/transports.js';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { prepareCluster } from '../../../../src/planner/plan/cluster.js';
import { planPrepared } from '../../../../src/planner/plan/plan.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { GdrMode } from '../../../../src/planner/topology/paths/gdr.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { cpu, gpu, nic, nvLink, onlyLocalSystem, pciSwitch, systemXml } from '../topology/machine.js';

function transportsOf(what: string | XmlElement, count: number, environment: Readonly<Record<string, string>> = {}) {
  const { parameters } = parametersFromEnvironment(environment);
  const prepared = prepareCluster({ hosts: [{ machine: typeof what === 'string' ? machine(what) : what, count }] }, parameters);
  const plan = planPrepared(prepared, parameters);
  const machines = new Map(
    prepared.flatMap(({ host, systems }) => host.nodes.map((node, index) => [node, systems[index]!] as const)),
  );
  return { plan, transports: new Transports(plan, machines, parameters) };
}

/** All connections of all rings, from the senders' and the receivers' side. */
function ringConnections({ plan, transports }: ReturnType<typeof transportsOf>): PlannedConnection[] {
  return Array.from({ length: plan.nChannels }, (_, channel) => channel).flatMap((channel) =>
    Array.from({ length: plan.nodes.nRanks }, (_, rank) => transports.ring(channel, rank)).flatMap(({ send, receive }) => [
      send!,
      receive!,
    ]),
  );
}

describe('transports', () => {
  it('are peer-to-peer within a host and the network between hosts', () => {
    const made = transportsOf('dgx-h100', 2);
    for (let rank = 0; rank < 16; rank++) {
      const { send, receive } = made.transports.ring(0, rank);
      for (const connection of [send!, receive!]) {
        const isNear = Math.floor(connection.peer / 8) === Math.floor(rank / 8);
        expect(connection).toMatchObject(
          isNear
            ? { via: 'P2P', read: false, relay: undefined, distance: PathType.NVL }
            : { via: 'NET', reason: { why: 'other-host' }, gdr: GdrMode.DEFAULT, gdrReason: 'near' },
        );
      }
    }
  });

  it('receivers use the device that is on the rail of the sender', () => {
    const { plan, transports } = transportsOf('dgx-h100', 4);
    for (let rank = 0; rank < plan.nodes.nRanks; rank++) {
      const { send } = transports.ring(0, rank);
      if (send?.via !== 'NET') continue;
      expect(transports.ring(0, send.peer).receive).toMatchObject({
        via: 'NET',
        peer: rank,
        dev: send.dev,
        proxyRank: send.peer,
      });
    }
  });

  it('read over NVLink between A100s, unless set to write', () => {
    const reads = (environment: Record<string, string>) =>
      new Set(
        ringConnections(transportsOf('dgx-a100', 1, environment)).map(
          (connection) => connection.via === 'P2P' && connection.read,
        ),
      );
    expect(reads({})).toEqual(new Set([true]));
    expect(reads({ NCCL_P2P_READ_ENABLE: '0' })).toEqual(new Set([false]));
    expect(reads({ NCCL_P2P_USE_CUDA_MEMCPY: '1' })).toEqual(new Set([false]));
  });

  it('reach far devices through a GPU that is near them, unless PXN is off', () => {
    const relayed = (environment: Record<string, string>) =>
      ringConnections(transportsOf('dgx-h100', 2, { NCCL_CROSS_NIC: '0', ...environment }))
        .filter((connection) => connection.via === 'NET')
        .filter(({ relay }) => relay !== undefined);
    const pxn = relayed({});
    expect(pxn.length).toBeGreaterThan(0);
    expect(pxn.every(({ distance }) => distance <= PathType.PXB)).toBe(true);
    expect(relayed({ NCCL_PXN_DISABLE: '1' })).toEqual([]);
  });

  it.each(['dgx-b200', 'gh200-4', 'oci-h100'])('need relays in rings but in no tree between two %s', (name) => {
    const made = transportsOf(name, 2);
    const { plan, transports } = made;
    const inTrees = Array.from({ length: plan.nChannels * plan.nodes.nRanks }, (_, at) => {
      const { up, down } = transports.tree(at % plan.nChannels, Math.floor(at / plan.nChannels), 'send');
      return [up, ...down];
    }).flat();
    const between = (connections: readonly (PlannedConnection | undefined)[]) =>
      connections.flatMap((connection) => (connection?.via === 'NET' ? [connection.relay !== undefined] : []));
    expect(between(ringConnections(made))).toContain(true);
    expect(new Set(between(inTrees))).toEqual(new Set([false]));
  });

  it('go through shared memory where GPUs are too far for peer-to-peer', () => {
    const { transports } = transportsOf('pcie-2-l40s', 1, { NCCL_P2P_LEVEL: 'PIX' });
    expect(transports.ring(0, 0).send).toMatchObject({ via: 'SHM', peer: 1, reason: { why: 'far', level: PathType.PIX } });
  });

  it('are shared memory between two nodes of a host: NCCL knows no path between them', () => {
    const made = transportsOf('dgx-1v', 1, { NCCL_P2P_DISABLE: '1' });
    expect(made.plan.nodes.nNodes).toBe(2);
    expect(
      ringConnections(made)
        .filter(({ via }) => via === 'SHM')
        .some((connection) => connection.via === 'SHM' && connection.reason.why === 'other-node'),
    ).toBe(true);
    const { transports } = transportsOf('dgx-1v', 1, { NCCL_P2P_DISABLE: '1', NCCL_SHM_DISABLE: '1' });
    expect(transports.ring(0, 0).send).toMatchObject({ via: 'NET', reason: { why: 'no-shm', noP2p: { why: 'other-node' } } });
    const apart = transportsOf('dgx-1v', 1, { NCCL_P2P_DISABLE: '1', NCCL_SHM_DISABLE: '1', NCCL_NET_DISABLE_INTRA: '1' });
    expect(apart.transports.ring(0, 0).send).toMatchObject({ via: 'none', reason: { why: 'other-node' } });
  });

  it('use device 0 where the network joins two ranks of a single host: its search has no NICs', () => {
    const nearNic = (bus: string, rank: number, dev: number, below: string) =>
      pciSwitch(`${bus}0`, gpu(`${bus}1`, rank, below) + nic(`${bus}2`, dev));
    const { transports } = transportsOf(
      systemXml(
        cpu(0, nearNic('1', 0, 2, nvLink('31', 2)) + nearNic('2', 1, 1, '')),
        cpu(1, nearNic('3', 2, 0, nvLink('11', 2))),
      ),
      1,
    );
    expect(transports.between(0, 2, 'ring', 0, 'send')).toMatchObject({ via: 'P2P' });
    expect(transports.between(0, 1, 'ring', 0, 'send')).toMatchObject({ via: 'SHM' });
    expect(transports.between(1, 2, 'ring', 0, 'send')).toMatchObject({ via: 'NET', reason: { why: 'faster' }, dev: 0 });
  });

  it('are undefined where ranks are on one node only through others', () => {
    const { parameters } = parametersFromEnvironment({ NCCL_SHM_DISABLE: '1', NCCL_NVB_DISABLE: '1' });
    const chain = systemXml(
      cpu(0, gpu('01', 0, nvLink('02', 2))),
      cpu(1, gpu('02', 1, nvLink('01', 2) + nvLink('03', 2))),
      cpu(2, gpu('03', 2, nvLink('02', 2))),
    );
    const transports = new NodeTransports(onlyLocalSystem(chain, parameters), parameters);
    expect(transports.between(0, 1)).toMatchObject({ via: 'P2P' });
    expect(transports.between(0, 2)).toMatchObject({ via: 'none', reason: { why: 'far', level: PathType.PXB } });
  });

  it('name the rank whose GPU a path over NVLink leads through', () => {
    const { transports } = transportsOf('dgx-1v', 1);
    expect(transports.between(0, 5, 'ring', 0, 'send')).toMatchObject({ via: 'P2P', distance: PathType.NVB });
    const connection = transports.between(0, 5, 'ring', 0, 'send');
    expect(connection.via === 'P2P' && connection.relay).toBeTypeOf('number');
    const copying = transportsOf('dgx-1v', 1, { NCCL_P2P_USE_CUDA_MEMCPY: '1' });
    expect(copying.transports.between(0, 5, 'ring', 0, 'send')).toMatchObject({ via: 'SHM', reason: { why: 'copy-engine' } });
  });

  it('give the reason why GPU Direct RDMA is not used', () => {
    const of = (name: string, environment: Record<string, string>) =>
      new Set(
        ringConnections(transportsOf(name, 2, environment)).flatMap((connection) =>
          connection.via === 'NET' ? [`${connection.gdr} ${connection.gdrReason}`] : [],
        ),
      );
    expect(of('hgx-a100-4', { NCCL_NET_GDR_LEVEL: 'LOC' })).toEqual(new Set(['0 far']));
    expect(of('dgx-h100', { NCCL_NET_GDR_READ: '0' })).toEqual(new Set(['0 read', '1 near']));
  });

  it('go both ways along a tree', () => {
    const { plan, transports } = transportsOf('dgx-h100', 3);
    for (let rank = 0; rank < plan.nodes.nRanks; rank++) {
      const { up, down } = transports.tree(1, rank, 'send');
      for (const connection of [up, ...down]) {
        if (connection === undefined) continue;
        const back = transports.tree(1, connection.peer, 'receive');
        expect([back.up, ...back.down].some((other) => other?.peer === rank && other.via === connection.via)).toBe(true);
      }
    }
  });

  it('refuse a rank or channel that does not exist', () => {
    const { transports } = transportsOf('pcie-2-l40s', 1);
    expect(() => transports.ring(0, 2)).toThrow(InvalidArgumentError);
    expect(() => transports.tree(64, 0, 'send')).toThrow(InvalidArgumentError);
  });
});
