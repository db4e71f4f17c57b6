import { describe, expect, it } from 'vitest';
import { comparePlan, planFinding } from '../../../../src/planner/log/checks/compare-plan.js';
import { diagnoseJob } from '../../../../src/planner/log/verdict/diagnosis.js';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';
import { verdictOf } from '../../../../src/planner/log/verdict/verdict.js';
import { interleaved, madeLog, type MadeLogOptions, planMachines, randomFrom } from './made-log.js';
import { codes, findingsOf, readLines } from './read.js';

const h100 = planMachines('dgx-h100', 2);
const pcie = planMachines('pcie-8-l40s', 1);
const made = (options: MadeLogOptions = {}) => interleaved(madeLog(h100, options), randomFrom(7));
const info = (rank: number, message: string) =>
  `node${Math.floor(rank / 8)}:${4000 + (rank % 8)}:${5000 + (rank % 8)} [${rank % 8}] NCCL INFO ${message}`;
const warn = (rank: number, source: string, message: string) =>
  `[2026-09-09 11:29:56] node${Math.floor(rank / 8)}:${4000 + (rank % 8)}:${5000 + (rank % 8)} [${rank % 8}] ${source} NCCL WARN ${message}`;

describe('an exception', () => {
  const traceback = [
    'Traceback (most recent call last):',
    '  File "/w/upload.py", line 20, in upload',
    '    s3.put(path)',
    'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https://s3/ckpt"',
  ];
  const after = ['will try again', 'upload ok', 'step 300 loss 2.8', 'Training finished'];
  const severities = (...lines: string[]) => codes(findingsOf(lines)).filter((each) => each.startsWith('rank-exception'));

  it('that the program caught is a remark, where lines of its progress follow', () => {
    expect(severities(...traceback, ...after)).toEqual(['rank-exception info']);
    expect(severities(...traceback, ...traceback, ...after)).toEqual(['rank-exception info']);
    const marked = (rank: number, lines: readonly string[]) => lines.map((line) => `[rank${rank}]: ${line}`);
    expect(severities(...marked(3, traceback), ...marked(3, after))).toEqual(['rank-exception info']);
    expect(severities(...marked(3, traceback), ...marked(0, after))).toEqual(['rank-exception error']);
  });

  it('ends its process where nothing but its message or another failure follows', () => {
    expect(severities(...traceback)).toEqual(['rank-exception error']);
    expect(severities(...traceback, 'step 300 loss 2.8')).toEqual(['rank-exception error']);
    expect(severities(...traceback, 'For debugging see the guide', 'Compile with it', 'Ask for help')).toEqual([
      'rank-exception error',
    ]);
    expect(severities(...traceback, ...after, 'ValueError: bad batch')).toEqual(['rank-exception error']);
  });
});

describe('init', () => {
  it('that hangs on one rank names the rank that made least progress', () => {
    const lines = made()
      .filter((line) => !/Init (?:COMPLETE|timings)/.test(line))
      .filter((line) => !(line.startsWith('node1:4003') && /Trees|Ring|Channel|Connected|coll channels/.test(line)));
    const [finding] = findingsOf(lines);
    expect(finding).toMatchObject({ code: 'init-unfinished', severity: 'error' });
    expect(finding!.cause).toBe('rank 11 had its topology and came least far: the others wait for it');
    expect(lines[finding!.places[0]!.line - 1]).toMatch(/^node1:4003:/);
  });

  it('that waits for ranks without a line names them', () => {
    const lines = made().filter((line) => !line.startsWith('node1:4005') && !/Init (?:COMPLETE|timings)/.test(line));
    expect(findingsOf(lines)[0]).toMatchObject({
      code: 'init-unfinished',
      problem: expect.stringContaining('of rank 13 there is no line at all') as string,
    });
  });

  it('that finished is fine in the log of one rank', () => {
    expect(codes(findingsOf(madeLog(h100)[3]!))).toEqual(['rank-not-logged info']);
  });

  it('cannot be judged from a part of a log, also in versions that never log the start of init', () => {
    const part = (release: 208 | 224, ...more: string[]) =>
      codes(findingsOf([...more, ...made({ release }).filter((line) => /Trees|Channel/.test(line))]));
    expect(part(224)).toEqual(['init-unfinished info']);
    expect(part(208, info(0, 'NCCL version 2.8.4+cuda11.1'))).toEqual(['init-unfinished info']);
  });

  it('that a log does not show to end is open, unless a rank is behind or something else failed', () => {
    const lines = made().filter((line) => !/Init (?:COMPLETE|timings)/.test(line));
    const diagnose = (all: readonly string[], rest: string | undefined) => {
      const reader = new NcclLogReader();
      reader.openFile('job.log');
      for (const line of all) reader.readLine(line);
      if (rest !== undefined) reader.readUnfinishedLine(rest);
      return diagnoseJob(reader.finish());
    };
    expect(diagnose(lines, undefined)).toMatchObject({
      outcome: 'undecided',
      open: {
        problem: 'the log ends in init, with 16 ranks at the same point, and nothing reports a failure',
        command: expect.stringContaining('py-spy dump') as string,
      },
    });
    const isBehind = (line: string) => line.startsWith('node1:4005') && !line.includes('Init START');
    expect(
      diagnose(
        lines.filter((line) => !isBehind(line)),
        undefined,
      ).outcome,
    ).toBe('fault');
    expect(diagnose([...lines, warn(9, 'misc/socket.cc:1', 'No space left on device')], undefined).outcome).toBe('fault');
    const cut = diagnose(lines, 'node1:4003:5003 ');
    expect(cut.outcome).toBe('undecided');
    expect(cut.open?.problem).toContain('the log is cut');
    expect(codes(cut.verdict.remarks)).toContain('init-unfinished info');
    expect(diagnose([...lines, warn(9, 'misc/socket.cc:1', 'No space left on device')], 'node1:4003:5003 ').outcome).toBe(
      'fault',
    );
  });

  it('is not cut in a log without its last line end, but in one that ends within a line', () => {
    const lines = made().filter((line) => !/Init (?:COMPLETE|timings)/.test(line));
    const diagnose = (rest: string) => {
      const reader = new NcclLogReader();
      reader.openFile('job.log');
      for (const line of lines) reader.readLine(line);
      reader.readUnfinishedLine(rest);
      return diagnoseJob(reader.finish()).open?.problem.startsWith('the log is cut');
    };
    const last = lines.at(-1)!;
    expect(diagnose(last)).toBe(false);
    expect(diagnose(info(9, 'Using non-device net plugin version 0'))).toBe(false);
    for (const length of [10, 25, last.length - 12]) expect([length, diagnose(last.slice(0, length))]).toEqual([length, true]);
  });

  it('ends with an error where versions differ, but not where one is only truncated', () => {
    const other = (version: string) => [...made().slice(0, 5), info(9, `NCCL version ${version}`), ...made().slice(5)];
    expect(codes(findingsOf(other('2.29.2+cuda12.4')))).toEqual(['version-mixed error']);
    expect(codes(findingsOf(other('2.30.7+cuda12.4')))).toEqual([]);
  });
});

describe('channels', () => {
  it('contradict each other where a rank has another ring', () => {
    const lines = made().map((line) =>
      line.startsWith('node0:4002') ? line.replace(/(Ring \d+ : \d+ -> 2) -> \d+/, '$1 -> 13') : line,
    );
    expect(codes(findingsOf(lines))).toEqual(['ring-contradiction error']);
  });

  it('contradict each other where a rank has another parent', () => {
    const lines = made().map((line) => (line.startsWith('node0:4002') ? line.replaceAll(/->2->\d+/g, '->2->13') : line));
    expect(codes(findingsOf(lines))).toEqual(['tree-contradiction error']);
  });

  it('are open where a ring visits a rank twice', () => {
    const lines = made({ graph: false }).map((line) => line.replace(/(Channel \d+\/16 :) ( ?\d+) ( ?\d+)/, '$1 $2 $2'));
    expect(codes(findingsOf(lines))).toEqual(['ring-open error']);
  });

  it('are disconnected where rings close too early', () => {
    const lines = made()
      .filter((line) => !/Channel \d+\/16/.test(line))
      .map((line) => {
        const [, channel, rank] = /Ring (\d+) : \d+ -> (\d+) -> \d+/.exec(line) ?? [];
        if (rank === undefined) return line;
        const base = Number(rank) < 8 ? 0 : 8;
        return line.replace(
          /Ring.*/,
          `Ring ${channel!} : ${base + ((Number(rank) + 7) % 8)} -> ${rank} -> ${base + ((Number(rank) + 1) % 8)}`,
        );
      });
    const [finding] = findingsOf(lines);
    expect(finding).toMatchObject({
      code: 'ring-open',
      severity: 'error',
      problem: expect.stringContaining('comes back to rank 0 after 8 ranks of 16') as string,
    });
  });

  it('differ in number', () => {
    const lines = made().map((line) => (line.startsWith('node1') ? line.replace('16 coll channels', '12 coll channels') : line));
    expect(codes(findingsOf(lines))).toEqual(['channels-differ error']);
  });
});

describe('transports', () => {
  it('over shared memory despite NVLink blame the setting that does it', () => {
    const { causes, consequences } = verdictOf(
      findingsOf(
        made({ environment: { NCCL_P2P_DISABLE: '1' }, connection: ({ via }) => (via === 'P2P' ? 'SHM/direct' : undefined) }),
      ),
    );
    expect(codes(causes)).toEqual(['p2p-disabled warning']);
    expect(consequences).toMatchObject([
      { code: 'shm-despite-nvlink', severity: 'error', cause: 'NCCL_P2P_DISABLE=1 is set', remedy: 'unset NCCL_P2P_DISABLE' },
    ]);
  });

  it('over the network inside a host are an error', () => {
    const lines = made({
      connection: ({ via, peer }, rank) =>
        via === 'P2P' && Math.min(rank, peer) === 4 && Math.max(rank, peer) === 5 ? 'NET/IB/4/GDRDMA' : undefined,
    });
    const [finding] = findingsOf(lines);
    expect(finding).toMatchObject({ code: 'network-inside-host', severity: 'error', ranks: [4, 5] });
  });

  it('are not judged for hosts whose names do not distinguish them', () => {
    const lines = made().map((line) => line.replace(/^node1:4/, 'node0:6'));
    expect(codes(findingsOf(lines))).toEqual([]);
  });

  it('over sockets despite InfiniBand are an error', () => {
    const {
      causes: [cause],
      consequences: [finding],
    } = verdictOf(
      findingsOf(
        made({ environment: { NCCL_NET: 'Socket' }, connection: ({ via }) => (via === 'NET' ? 'NET/Socket/0' : undefined) }),
      ),
    );
    expect(cause).toMatchObject({ code: 'net-socket' });
    expect(finding).toMatchObject({ code: 'socket-despite-ib', severity: 'error', cause: 'NCCL_NET=Socket is set' });
  });

  it('over sockets for want of InfiniBand are a warning', () => {
    const lines = made({ connection: ({ via }) => (via === 'NET' ? 'NET/Socket/0' : undefined) }).map((line) =>
      line.replace(/NET\/IB : Using.*/, 'NET/IB : No device found.'),
    );
    expect(codes(findingsOf(lines))).toEqual(['no-rdma warning']);
  });

  it('over two networks cannot connect', () => {
    expect(
      codes(findingsOf(made({ connection: ({ via }, rank) => (via === 'NET' && rank >= 8 ? 'NET/Socket/0' : undefined) }))),
    ).toEqual(['network-mixed error']);
  });

  it('without GPUDirect on one host are an error, on all a warning', () => {
    const without = (ranks: (rank: number) => boolean) =>
      findingsOf(
        made({
          connection: (connection, rank) => (connection.via === 'NET' && ranks(rank) ? `NET/IB/${connection.dev}` : undefined),
        }),
      );
    const [mixed] = without((rank) => rank >= 8);
    expect(mixed).toMatchObject({ code: 'gdr-mixed', severity: 'error', ranks: [8, 9, 10, 11, 12, 13, 14, 15] });
    expect(codes(without(() => true))).toEqual(['gdr-off warning']);
  });

  it('over few of the NICs name the idle ones', () => {
    const findings = findingsOf(
      made({ connection: (connection) => (connection.via === 'NET' ? `NET/IB/${connection.dev % 2}/GDRDMA` : undefined) }),
    );
    expect(codes(findings)).toEqual(['nic-unused warning']);
    expect(findings[0]!.problem).toContain('and 1 more communicator or host like this');
    expect(findings[0]!.problem).toContain('uses 2: nothing goes by mlx5_2 (2), mlx5_3 (3)');
  });

  it('over NICs unevenly are reported with the ratio', () => {
    const findings = findingsOf(
      made({
        connection: (connection) => (connection.via === 'NET' && connection.dev === 1 ? 'NET/IB/0/GDRDMA' : undefined),
      }).map((line) => line.replace('[1]mlx5_1:1/IB ', '')),
    );
    expect(codes(findings)).toEqual(['nic-uneven warning']);
  });

  it('on a machine without NVLink between sockets may use shared memory', () => {
    const lines = interleaved(madeLog(pcie), randomFrom(3));
    expect(lines.some((line) => line.includes('via SHM'))).toBe(true);
    expect(codes(findingsOf(lines))).toEqual([]);
  });
});

describe('settings', () => {
  it('that differ between processes are reported with their hosts', () => {
    const lines = [
      ...made(),
      info(0, 'NCCL_IB_HCA set by environment to mlx5_0.'),
      info(9, 'NCCL_IB_HCA set by environment to mlx5_9.'),
    ];
    const [finding] = findingsOf(lines);
    expect(finding).toMatchObject({ code: 'environment-differs', severity: 'warning' });
    expect(finding!.problem).toContain('mlx5_9 on node1');
  });

  it("that are each process's own may differ", () => {
    const lines = [
      ...made(),
      info(0, 'NCCL_DEBUG_FILE set by environment to a.'),
      info(9, 'NCCL_DEBUG_FILE set by environment to b.'),
    ];
    expect(findingsOf(lines)).toEqual([]);
  });

  it('that a whole host lacks are reported', () => {
    const everywhere = Array.from({ length: 16 }, (_, rank) => info(rank, 'NCCL_DEBUG set by environment to INFO.'));
    const first = Array.from({ length: 8 }, (_, rank) => info(rank, 'NCCL_IB_TC set by environment to 106.'));
    expect(findingsOf([...made(), ...everywhere, ...first]).map(({ problem }) => problem)).toEqual([
      'NCCL_IB_TC=106 is set in every process of 1 host, and in none of node1',
    ]);
  });
});

describe('warnings', () => {
  it('that are known come with cause and remedy, once for all that are alike', () => {
    const lines = [
      ...made(),
      ...Array.from({ length: 5000 }, (_, index) =>
        warn(
          index % 16,
          'ib_plugin.c:1615',
          `NET/IB : Got completion from peer 10.0.0.9<${40_000 + index}> with status=12 opcode=0 len=${index} vendor err 129 (Recv)`,
        ),
      ),
    ];
    const findings = findingsOf(lines);
    expect(codes(findings)).toEqual(['ib-retry-exceeded error']);
    expect(findings[0]!.problem).toContain('5000 lines on rank 0, rank 1');
    expect(findings[0]!.remedy).toContain('ibstat');
  });

  it('that are not known are a remark in a job that completed init, and are shown with the lines around them where a call failed', () => {
    const unknown = warn(3, 'misc/new.cc:1', 'Something nobody has seen');
    expect(codes(findingsOf([...made(), unknown]))).toEqual(['nccl-warning info']);
    const [finding] = findingsOf([
      ...made(),
      info(3, 'before'),
      unknown,
      info(4, 'of another thread'),
      info(3, 'misc/new.cc:2 -> 3'),
    ]);
    expect(finding).toMatchObject({
      code: 'nccl-warning',
      severity: 'error',
      context: [expect.any(String), expect.any(String), 'before', 'WARN Something nobody has seen', 'misc/new.cc:2 -> 3'],
    });
  });

  it('are read even if the lines before them are missing', () => {
    for (const text of [
      'NCCL WARN Something new',
      '[3] misc/new.cc:1 NCCL WARN Something new',
      '{"log":"NCCL WARN Something new\\n","stream":"stderr"}',
      '\u001b[31m node1:5:6 [0] NCCL WARN Something new\u001b[0m',
      'halfNCCL WARN Something new',
    ]) {
      expect(
        findingsOf([text]).map(({ code, problem }) => `${code} ${problem.includes('Something new') ? 'shown' : ''}`),
        text,
      ).toEqual(['nccl-warning shown']);
    }
  });

  it('that are missing leave the failed calls', () => {
    expect(codes(findingsOf([...made(), info(3, 'transport/net.cc:1302 -> 6'), info(3, 'proxy.cc:698 -> 7')]))).toEqual([
      'calls-failed error',
    ]);
  });
});

const row = (bytes: number, bus: number, wrong = '0') =>
  `  ${bytes}  ${bytes / 4}  float  sum  -1  1000.0  ${(bus / 2).toFixed(2)}  ${bus.toFixed(2)}  ${wrong}  1001.0  ${(bus / 2).toFixed(2)}  ${(bus * 0.99).toFixed(2)}  ${wrong}`;
const table = (...rows: string[]) => [
  '# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0',
  ...Array.from(
    { length: 16 },
    (_, rank) =>
      `#  Rank ${String(rank).padStart(2)} Group  0 Pid 895544 on     node0 device  0 [0002:00:01] NVIDIA H100 80GB HBM3`,
  ),
  '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong',
  ...rows,
  '# Out of bounds values : 0 OK',
  '# Avg bus bandwidth    : 200.1',
];

describe('tables of nccl-tests', () => {
  it('that reach the bandwidth of the search have no finding, behind prefixes too', () => {
    expect(findingsOf([...made(), ...table(row(1024, 0.1), row(2 ** 30, 370))])).toEqual([]);
    expect(
      readLines([...made(), ...table(row(2 ** 30, 370)).map((line) => `[1,0]<stdout>:${line}`)]).tables[0]!.rows[0],
    ).toMatchObject({ busGBps: 370 });
    expect(
      readLines([
        '[0]      1048576        262144     float     sum      -1[0]    1626.5    0.64    1.24      0[0]    2302.3    0.46    0.87      0',
      ]).tables[0]!.rows[0],
    ).toMatchObject({ bytes: 1_048_576, busGBps: 1.24, timeUs: 1626.5 });
  });

  it('far below it are reported with both numbers', () => {
    const [finding] = findingsOf([...made(), ...table(row(2 ** 30, 27))]);
    expect(finding).toMatchObject({ code: 'bandwidth-low', severity: 'error' });
    expect(finding!.problem).toBe(
      'all_reduce reaches 27 GB/s of bus bandwidth at 1024 MiB; the search found 384.0 GB/s (8 channels × 48.0): 7 %',
    );
    expect(codes(findingsOf([...made(), ...table(row(2 ** 30, 150))]))).toEqual(['bandwidth-low warning']);
  });

  it('of small sizes only are not compared with it', () => {
    expect(findingsOf([...made(), ...table(row(2 ** 20, 3))])).toEqual([]);
  });

  it('with wrong elements are an error', () => {
    expect(codes(findingsOf(table(row(2 ** 20, 3, '17'))))).toEqual(['result-wrong error']);
  });
});

describe('a plan for other machines', () => {
  it('differs first in the search', () => {
    const other = planMachines('dgx-a100', 2);
    const [communicator] = readLines(made()).communicators;
    const comparison = comparePlan(communicator!, other.plan, other.transports);
    expect(comparison.differences[0]!.decision).toBe('ring search');
    expect(planFinding(communicator!, comparison, '2 x dgx-a100', '2.30.7')).toMatchObject({
      code: 'plan-differs',
      severity: 'warning',
    });
  });

  it("in which one NIC lacks GPUDirect differs in the rings' network", () => {
    const lines = made({
      connection: (connection) => (connection.via === 'NET' && connection.dev === 5 ? 'NET/IB/5' : undefined),
    });
    const { differences } = comparePlan(readLines(lines).communicators[0]!, h100.plan, h100.transports);
    expect(new Set(differences.map(({ logged, planned }) => `${logged}, planned ${planned}`))).toEqual(
      new Set(['NET/5, planned NET/5/GDRDMA']),
    );
  });
});

describe('communicators', () => {
  it('that one thread sets up one after the other are distinguished, with names and without', () => {
    for (const release of [208, 219] as const) {
      const lines = [
        ...interleaved(madeLog(h100, { release, commId: '0xa' }), randomFrom(1)),
        ...interleaved(madeLog(h100, { release, commId: '0xb' }), randomFrom(2)).map((line) =>
          line.replaceAll('0x55d0c', '0x66d0c'),
        ),
      ];
      const model = readLines(lines);
      expect(model.communicators.map(({ ranks }) => ranks.size)).toEqual([16, 16]);
      expect(codes(findingsOf(lines))).toEqual([]);
    }
  });

  it('are one where the same log is given twice', () => {
    const lines = made();
    expect(readLines([...lines, ...lines]).communicators.map(({ ranks }) => ranks.size)).toEqual([16]);
  });

  it("that were split have their parent's name and colour", () => {
    const split = (rank: number, phase: string) =>
      info(
        rank,
        `ncclCommSplit comm 0x77${rank} rank ${rank % 8} nranks 8 cudaDev ${rank % 8} nvmlDev ${rank % 8} busId 1000 parent 0x55d0c${(rank * 64).toString(16).padStart(6, '0')} splitCount 1 color ${Math.floor(rank / 8)} key 0${phase === 'START' ? '' : ' '}- Init ${phase}`,
      );
    const ranks = Array.from({ length: 16 }, (_, rank) => rank);
    const { communicators } = readLines([
      ...made({ release: 224 }),
      ...ranks.map((rank) => split(rank, 'START')),
      ...ranks.map((rank) => split(rank, 'COMPLETE')),
    ]);
    expect(communicators.map(({ nRanks, isSplit, ranks: all }) => [nRanks, isSplit, all.size])).toEqual([
      [16, false, 16],
      [8, true, 8],
      [8, true, 8],
    ]);
    expect(communicators[1]!.id).toBe('of 8 ranks, split off 0x5c3e1f2a9b8d7e60, color 0');
  });
});

describe('memory of a GPU', () => {
  const memory = (line: string) => findingsOf([line]).find(({ code }) => code === 'cuda-memory');
  it('that the program uses up is no matter of channels', () => {
    const lines = [
      '[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 1 has a total capacity of 79.11 GiB',
      'ValueError: Free memory on device (12.3/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).',
    ];
    for (const line of lines) {
      const { cause, remedy } = memory(line)!;
      expect(`${cause} ${remedy}`).not.toMatch(/NCCL/);
    }
  });

  it('that NCCL does not get may be', () => {
    expect(memory(warn(1, 'include/alloc.h:96', "Cuda failure 2 'out of memory'"))?.remedy).toContain('NCCL_MAX_NCHANNELS');
    expect(memory(warn(1, 'include/alloc.h:178', 'Failed to CUDA calloc async 608 bytes'))?.remedy).toContain(
      'NCCL_MAX_NCHANNELS',
    );
  });
});

describe('a job of which nothing tells how it went on', () => {
  const open = (transport: string, version: string) =>
    diagnoseJob(
      readLines(
        [0, 1].flatMap((rank) => [
          info(rank, `NCCL version ${version}`),
          info(
            rank,
            `ncclCommInitRank comm 0x1 rank ${rank} nranks 2 cudaDev ${rank} nvmlDev ${rank} busId 1b000 commId 0xa - Init START`,
          ),
          info(rank, `Channel 00/0 : ${rank}[${rank}] -> ${1 - rank}[${1 - rank}] via ${transport}`),
          info(
            rank,
            `ncclCommInitRank comm 0x1 rank ${rank} nranks 2 cudaDev ${rank} nvmlDev ${rank} busId 1b000 commId 0xa - Init COMPLETE`,
          ),
        ]),
      ),
    ).open?.remedy;

  it('has P2P over an unknown way where only the transport is known', () => {
    for (const transport of ['P2P/IPC/read', 'P2P/CUMEM']) {
      expect(open(transport, '2.26.2+cuda12.6')).toMatch(/exchange data by P2P: /);
      expect(open(transport, '2.26.2+cuda12.6')).not.toContain('P2P over PCIe');
    }
  });

  it('is not asked about RAS where its NCCL has none', () => {
    expect(open('P2P/IPC/read', '2.19.3+cuda12.2')).not.toContain('RAS');
    expect(open('P2P/IPC/read', '2.19.3+cuda12.2')).toContain('stacks');
  });
});
