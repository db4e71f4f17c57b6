import { describe, expect, it } from 'vitest';
import { checkExpected } from '../../../../src/planner/expect/logged.js';
import { diagnoseJob } from '../../../../src/planner/log/verdict/diagnosis.js';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';

/** A table of all_reduce_perf on one host with so much bus bandwidth at every large size. */
function modelOf(
  gpu: string,
  busGBps: number,
  { nRanks = 8, before = [] as readonly string[], isNamed = true, nHosts = 1 } = {},
) {
  const rows = [26, 28, 30, 32].map((power) => {
    const bytes = 2 ** power;
    const algorithmGBps = (busGBps * nRanks) / (2 * (nRanks - 1));
    const half = `${(bytes / algorithmGBps / 1000).toFixed(1)} ${algorithmGBps.toFixed(2)} ${busGBps.toFixed(2)} 0`;
    return `${bytes} ${bytes / 4} float sum -1 ${half} ${half}`;
  });
  const reader = new NcclLogReader();
  reader.openFile('job.log');
  for (const line of [
    ...before,
    ...(isNamed ? ['# Collective test starting: all_reduce_perf'] : []),
    `# nThread 1 nGpus ${nRanks} minBytes 67108864 maxBytes 4294967296 step: 4(factor) warmup iters: 5 iters: 20 graph: 0`,
    ...Array.from(
      { length: nRanks },
      (_, rank) =>
        `#  Rank  ${rank} Group  0 Pid   3591 on   gpu${1 + Math.floor((rank * nHosts) / nRanks)} device  ${rank % (nRanks / nHosts)} [0x10] ${gpu}`,
    ),
    '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong',
    ...rows,
    '# Out of bounds values : 0 OK',
    `# Avg bus bandwidth    : ${busGBps}`,
  ])
    reader.readLine(line);
  return reader.finish();
}

describe('results in a log of a board with NVSwitches', () => {
  it('are a finding where they are far slower than expected', () => {
    const model = modelOf('NVIDIA H100 80GB HBM3', 38);
    const [finding, ...more] = checkExpected(model);
    expect(more).toEqual([]);
    expect(finding).toMatchObject({ code: 'slower-than-expected', severity: 'warning' });
    expect(finding?.problem).toMatch(
      /^all_reduce reaches 38\.0 GB\/s of bus bandwidth at 4096 MiB; [34]\d\d\.\d GB\/s are expected of dgx-h100 /,
    );
    expect(diagnoseJob(model, checkExpected(model)).outcome).toBe('fault');
  });

  it('are a finding also where the program, an older one, does not print its name', () => {
    const [finding] = checkExpected(modelOf('NVIDIA H100 80GB HBM3', 38, { isNamed: false }));
    expect(finding).toMatchObject({ code: 'slower-than-expected' });
    expect(checkExpected(modelOf('NVIDIA H100 80GB HBM3', 430, { isNamed: false }))).toEqual([]);
  });

  it('are none where they are as expected', () => {
    expect(checkExpected(modelOf('NVIDIA H100 80GB HBM3', 430))).toEqual([]);
    expect(checkExpected(modelOf('NVIDIA A100-SXM4-80GB', 230))).toEqual([]);
  });

  it('are not judged where the machine is unknown: cards, parts of a board, GPUs that the catalogue lacks', () => {
    const unknown = [{ code: 'speed-not-compared', problem: 'the speed was not compared: the machine is not known' }];
    expect(checkExpected(modelOf('NVIDIA H100 PCIe', 20))).toMatchObject(unknown);
    expect(checkExpected(modelOf('NVIDIA H100 80GB HBM3', 20, { nRanks: 4 }))).toMatchObject(unknown);
    expect(checkExpected(modelOf('NVIDIA Z900', 20))).toMatchObject(unknown);
  });

  it('are not explained by a setting that the log does not have', () => {
    const before = [
      'gpu1:3591:3591 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>',
      'gpu1:3591:3591 [0] NCCL INFO NCCL version 2.27.7+cuda12.8',
    ];
    const [finding] = checkExpected(modelOf('NVIDIA H100 80GB HBM3', 38, { before }));
    expect(finding?.problem).toContain('NCCL 2.27.7');
    expect(finding?.remedy).not.toMatch(/look for NCCL_/);
  });

  it('of several hosts are said not to be compared, with the command that does', () => {
    const model = modelOf('NVIDIA H100 80GB HBM3', 2, { nRanks: 16, nHosts: 2 });
    const findings = checkExpected(model);
    expect(findings).toMatchObject([
      {
        code: 'speed-not-compared',
        severity: 'info',
        problem: 'the speed was not compared: 2 hosts',
        remedy: 'tccl expect dgx-h100 --nodes 2 job.log compares it',
      },
    ]);
    expect(diagnoseJob(model, findings).outcome).toBe('healthy');
  });

  it('of H100s on several hosts that talk TCP for want of RDMA devices are a finding', () => {
    const host = (name: string) => [
      `${name}:5:9 [0] NCCL INFO NET/IB : No device found.`,
      `${name}:5:9 [0] NCCL INFO Using network Socket`,
    ];
    const before = [...host('gpu1'), ...host('gpu2')];
    const codesOf = (gpu: string) =>
      diagnoseJob(modelOf(gpu, 2, { nRanks: 2, nHosts: 2, before })).verdict.causes.map(({ code }) => code);
    expect(codesOf('NVIDIA H100 80GB HBM3')).toEqual(['no-rdma']);
    expect(codesOf('NVIDIA GeForce RTX 4090')).toEqual([]);
  });

  it('that an explanation fits name it', () => {
    const [finding] = checkExpected(modelOf('NVIDIA H100 80GB HBM3', 220));
    expect(finding?.cause).toBe('these times fit best: half of the NVLinks are down');
  });

  it('that no explanation brings near name the two nearest with their errors', () => {
    const [finding] = checkExpected(modelOf('NVIDIA H100 80GB HBM3', 203));
    expect(finding?.cause).toMatch(
      /^no single explanation fits; the nearest: .+ \(off by \d+ %, explains [01] of 4 rows\); .+ \(off by \d+ %, explains/,
    );
  });
});
