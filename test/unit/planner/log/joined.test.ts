import { describe, expect, it } from 'vitest';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';
import { checkLog } from '../../../../src/planner/log/verdict/check-log.js';

/** Findings above `info` of files, each a list of lines. */
function found(...files: readonly (readonly string[])[]) {
  const reader = new NcclLogReader();
  for (const [index, lines] of files.entries()) {
    reader.openFile(`host${index}.log`);
    for (const line of lines) reader.readLine(line);
  }
  return checkLog(reader.finish()).filter(({ severity }) => severity !== 'info');
}

const codesOf = (findings: ReturnType<typeof found>) => findings.map(({ code }) => code);
const refused = (host: string) =>
  `${host}:10:11 [0] misc/socket.cc:400 NCCL WARN socketStartConnect: Connect to 10.0.0.9<4000> failed : Connection refused`;

describe('facts of several hosts', () => {
  const version = (host: string, release: string) => [
    `${host}:10:10 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>`,
    `${host}:10:10 [0] NCCL INFO NCCL version ${release}+cuda12.4`,
    refused(host),
  ];

  it('name different releases of NCCL, also where no communicator was made', () => {
    const [first] = found(version('a', '2.21.5'), version('b', '2.26.2'));
    expect(first).toMatchObject({ code: 'version-mixed', problem: 'hosts run different NCCL: 2.21.5 on a, 2.26.2 on b' });
    expect(codesOf(found(version('a', '2.21.5'), version('b', '2.21.5')))).not.toContain('version-mixed');
  });

  it('are not compared between jobs that follow each other in one file', () => {
    expect(codesOf(found([...version('a', '2.21.5'), ...version('b', '2.26.2')]))).not.toContain('version-mixed');
    const old = 'b:10:10 [0] NCCL INFO Bootstrap : Using [0]eth0:10.0.0.2<0>';
    const words = 'b:10:11 [0] include/socket.h:390 NCCL WARN Connect to 10.0.0.9<4000> failed : Connection refused';
    expect(codesOf(found([...version('a', '2.26.2'), old, words]))).not.toContain('version-mixed');
  });

  it('name different releases of the network plugin', () => {
    const plugin = (host: string, release: string) => [
      `${host}:10:10 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl ${release}`,
      refused(host),
    ];
    const [first] = found(plugin('a', '1.7.4-aws'), plugin('b', '1.13.2-aws'));
    expect(first?.problem).toBe(
      'hosts have different network plugins: aws-ofi-nccl 1.7.4-aws on a, aws-ofi-nccl 1.13.2-aws on b',
    );
    expect(codesOf(found(plugin('a', '1.7.4-aws'), plugin('b', '1.7.4-aws')))).not.toContain('net-mismatch');
  });
});

describe('MTUs', () => {
  const addresses = (host: string, name: string, mtu: number) => [
    `# tccl: host ${host}, command ip addr`,
    `2: ${name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu ${mtu} qdisc mq state UP group default qlen 1000`,
    '    inet 10.0.0.1/24 scope global',
  ];

  it('of the interfaces on which hosts meet are compared, whatever their names', () => {
    const job = ['a', 'b'].map((host, index) => [
      `${host}:10:10 [0] NCCL INFO Bootstrap : Using ${index === 0 ? 'eth0' : 'ens3'}:10.0.0.${index + 1}<0>`,
    ]);
    const mixed = found(addresses('a', 'eth0', 9000), addresses('b', 'ens3', 1500), ...job);
    expect(mixed.find(({ code }) => code === 'mtu-differs')?.problem).toBe(
      'eth0 has an MTU of 9000 on a, and ens3 one of 1500 on b',
    );
    expect(codesOf(found(addresses('a', 'eth0', 9000), addresses('b', 'ens3', 9000), ...job))).not.toContain('mtu-differs');
    expect(codesOf(found(addresses('a', 'eth0', 9000), addresses('b', 'ens3', 1500)))).not.toContain('mtu-differs');
  });

  it('of ports of NICs are compared by name', () => {
    const ports = (host: string, mtu: number) => [
      `# tccl: host ${host}, command ibv_devinfo -v`,
      'hca_id:\tmlx5_0',
      '\ttransport:\t\t\tInfiniBand (0)',
      '\t\tport:\t1',
      '\t\t\tstate:\t\t\tPORT_ACTIVE (4)',
      '\t\t\tmax_mtu:\t\t4096 (5)',
      `\t\t\tactive_mtu:\t\t${mtu} (3)`,
      '\t\t\tlink_layer:\t\tEthernet',
    ];
    const mixed = found(ports('a', 4096), ports('b', 1024));
    expect(mixed.find(({ code }) => code === 'mtu-differs')?.problem).toBe(
      'mlx5_0 (Ethernet) has an MTU of 4096 on a, and 1024 on b',
    );
    expect(codesOf(found(ports('a', 4096), ports('b', 4096)))).not.toContain('mtu-differs');
  });
});
