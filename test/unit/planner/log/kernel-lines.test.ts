import { describe, expect, it } from 'vitest';
import { diagnoseJob } from '../../../../src/planner/log/verdict/diagnosis.js';
import { kernelStampOf } from '../../../../src/planner/log/matching/kernel-lines.js';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';

const xid = 'NVRM: Xid (PCI:0000:5d:00): 79, pid=88123, name=python3, GPU has fallen off the bus.';
const noAdapter = 'NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x22:0x56:762)';
const session = 'systemd[1]: Started Session 12 of user root.';
const failed = [
  '2026-11-26 14:00:02,120 [rank3]: Traceback (most recent call last):',
  '2026-11-26 14:00:02,120 [rank3]:   File "/w/train.py", line 40, in <module>',
  "2026-11-26 14:00:02,121 [rank3]: FileNotFoundError: [Errno 2] No such file or directory: '/shared/cfg.yaml'",
];
const undated = failed.map((line) => line.slice(line.indexOf('[rank3]')));
const rank = (host: string, text: string) => `${host}:10:40 [0] NCCL INFO ${text}`;
const begun = (host: string) =>
  ['START', 'COMPLETE'].map((state) =>
    rank(
      host,
      `ncclCommInitRankConfig comm 0x660 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x5151aa - Init ${state}`,
    ),
  );
const ended = [...begun('w0'), rank('w0', 'comm 0x660 rank 0 nranks 1 cudaDev 0 busId 1b000 - Destroy COMPLETE')];

function diagnosed(kernel: readonly string[], job: readonly string[]) {
  const reader = new NcclLogReader();
  for (const [name, lines] of [
    ['dmesg.txt', kernel],
    ['job.log', job],
  ] as const) {
    reader.openFile(name);
    for (const line of lines) reader.readLine(line);
  }
  const { outcome, verdict } = diagnoseJob(reader.finish());
  return { outcome, causes: verdict.causes.map(({ code }) => code), remarks: verdict.remarks.map(({ problem }) => problem) };
}

describe('a stamp of the kernel', () => {
  it.each([
    ['dmesg --time-format iso', '2026-11-20T10:11:12,123456+01:00 ', undefined],
    ['dmesg -x', 'kern  :err   : [Fri Nov 20 10:11:12 2026] ', undefined],
    ['journalctl -o short-full', 'Fri 2026-11-20 10:11:12 UTC gpu-9 kernel: ', 'gpu-9'],
    ['journalctl -o short-precise', 'Nov 20 10:11:12.123456 gpu-9 kernel: ', 'gpu-9'],
    ['journalctl -o short-iso', '2026-11-20T10:11:12+0000 gpu-9 kernel: ', 'gpu-9'],
  ])('is read in the form of %s', (_, head, host) => {
    const stamp = kernelStampOf(`${head}${xid}`);
    expect(stamp).toMatchObject({ host, uptime: undefined });
    expect(stamp?.moment?.ms).toBeCloseTo(((323 + 1) * 24 + 10) * 3_600_000 + 11 * 60_000 + 12_000, -4);
  });

  it.each([
    ['dmesg -r', '<3>[12345.678901] ', undefined],
    ['journalctl -o short-unix', '1795169472.123456 gpu-9 kernel: ', 'gpu-9'],
  ])('has no date in the form of %s', (_, head, host) => {
    expect(kernelStampOf(`${head}${xid}`)).toMatchObject({ host, moment: undefined });
  });

  it('is none in lines of a program', () => {
    expect(kernelStampOf('2026-11-20 10:11:12,123 INFO trainer: step 1')).toBeUndefined();
    expect(kernelStampOf('2026-11-20T10:11:12.123456Z stdout F step 1')).toBeUndefined();
  });
});

describe('a line of the kernel', () => {
  it.each([
    ['dmesg -T', `[Sun Nov  1 09:00:00 2026] ${xid}`],
    ['dmesg -T of another year', `[Wed Nov 26 14:00:00 2025] ${xid}`],
    ['syslog', `Nov  1 09:00:00 w0 kernel: ${xid}`],
    ['journalctl -o short-iso', `2026-11-01T09:00:00+0000 w0 kernel: ${xid}`],
  ])('from long before the job is a remark: %s', (_, line) => {
    const { causes, remarks } = diagnosed([line], failed);
    expect(causes).toEqual(['rank-exception']);
    expect(remarks).toEqual([expect.stringMatching(/fallen off the bus.*, (?:25|365) days before the job's first line$/)]);
  });

  it.each([
    ['of the same hour', `[Thu Nov 26 14:00:00 2026] ${xid}`],
    ['of a clock in another zone', `[Thu Nov 26 02:00:00 2026] ${xid}`],
    ['while the job ran', `[Sat Nov 28 02:00:00 2026] ${xid}`],
  ])('is the cause: %s', (_, line) => {
    expect(diagnosed([line], failed).causes[0]).toBe('xid-bus');
  });

  it('of today is the cause beside an old one of the same kind', () => {
    const { causes, remarks } = diagnosed([`[Sun Nov  1 09:00:00 2026] ${xid}`, `[Thu Nov 26 14:00:00 2026] ${xid}`], failed);
    expect(causes[0]).toBe('xid-bus');
    expect(remarks).toEqual([expect.stringContaining('25 days before')]);
  });

  it('of a new year is the cause in a job that began in the old one', () => {
    const job = failed.map((line) => line.replace('2026-11-26', '2026-12-31'));
    expect(diagnosed([`Jan  1 00:10:00 w0 kernel: ${xid}`], job).causes[0]).toBe('xid-bus');
  });

  it.each([
    ['seconds', `[  500.122331] ${xid}`, `[2592000.000000] ${session}`],
    ['dates', `[Sun Nov  1 09:00:00 2026] ${xid}`, `[Thu Nov 26 08:00:00 2026] ${session}`],
  ])('long before the last one is a remark where the job has no dates, but ended or says why it failed: %s', (_, line, last) => {
    const remarks = [expect.stringContaining("days before the end of that kernel's log")];
    expect(diagnosed([line, last], ended)).toEqual({ outcome: 'healthy', causes: [], remarks });
    expect(diagnosed([line, last], undated)).toMatchObject({ causes: ['rank-exception'], remarks });
    expect(diagnosed([line, last], begun('w0')).causes).toEqual(['xid-bus']);
    expect(diagnosed([line, last], []).causes).toEqual(['xid-bus']);
  });

  it('about a state that holds until the next boot is the cause, however old', () => {
    expect(diagnosed([`[   12.122331] ${noAdapter}`, `[2592000.000000] ${session}`], undated).causes).toContain('driver-init');
  });

  it('of a host that is none of the job is a remark', () => {
    const line = (host: string) => `Nov 26 13:59:44 ${host} kernel: ${xid}`;
    const { causes, remarks } = diagnosed([line('gpu07')], [...begun('n0'), ...failed]);
    expect(causes).toEqual(['rank-exception']);
    expect(remarks).toEqual([expect.stringContaining("on gpu07, which is none of the job's hosts")]);
    expect(diagnosed([line('gpu07.example.org')], [...begun('gpu07'), ...failed]).causes[0]).toBe('xid-bus');
    // A pod has a name of its own.
    expect(diagnosed([line('gpu07')], [...begun('train-worker-0'), ...failed]).causes[0]).toBe('xid-bus');
  });
});
