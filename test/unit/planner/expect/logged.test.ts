import { describe, expect, it } from 'vitest';
import { checkExpected } from '../../../../src/planner/expect/logged.js';
import { diagnoseJob } from '../../../../src/planner/log/diagnosis.js';
import { NcclLogReader } from '../../../../src/planner/log/read-log.js';

/** A table of all_reduce_perf on one host with so much bus bandwidth at every large size. */
function modelOf(gpu: string, busGBps: number, { nRanks = 8, before = [] as readonly string[], isNamed = true } = {}) {
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
      (_, rank) => `#  Rank  ${rank} Group  0 Pid   3591 on   gpu1 device  ${rank} [0x10] ${gpu}`,
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
    expect(finding?.cause).toMatch(/^these times fit best: /);
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
    expect(checkExpected(modelOf('NVIDIA H100 PCIe', 20))).toEqual([]);
    expect(checkExpected(modelOf('NVIDIA H100 80GB HBM3', 20, { nRanks: 4 }))).toEqual([]);
    expect(checkExpected(modelOf('NVIDIA Z900', 20))).toEqual([]);
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
});
