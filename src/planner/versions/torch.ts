import { InvalidArgumentError } from '../../errors.js';

/**
 * The NCCL of each release of PyTorch: what its wheels on PyPI for x86-64 Linux require (package nvidia-nccl-cu12 or
 * nvidia-nccl-cu13), then that of builds for other versions of CUDA where it differs. From 2.10 on: the table in
 * PyTorch's RELEASE.md (pytorch/pytorch#190386).
 */
export const ncclOfTorch: readonly (readonly [torch: string, nccl: string, builds?: Readonly<Record<string, string>>])[] = [
  ['2.1', '2.18.1'],
  ['2.2', '2.19.3'],
  ['2.3', '2.20.5'],
  ['2.4', '2.20.5'],
  ['2.5', '2.21.5'],
  ['2.6', '2.21.5'],
  ['2.7', '2.26.2'],
  ['2.8', '2.27.3'],
  ['2.9', '2.27.5'],
  ['2.10', '2.27.5', { cu130: '2.28.9' }],
  ['2.11', '2.28.9'],
  ['2.12', '2.29.7', { cu126: '2.29.3' }],
  ['2.13', '2.29.7', { cu126: '2.29.3' }],
];

/**
 * The version of NCCL in the wheels of a release of PyTorch: `2.7`, `2.7.1` or `2.7.1+cu128`.
 *
 * @throws InvalidArgumentError `UNKNOWN_NAME` for a release that is not in the table, and for wheels without CUDA
 */
export function ncclInTorch(text: string): string {
  const [, release, build] = /^v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?(?:\+(\w+))?$/.exec(text.trim()) ?? [];
  const first = ncclOfTorch[0]?.[0] ?? '';
  const last = ncclOfTorch.at(-1)?.[0] ?? '';
  if (release === undefined)
    throw new InvalidArgumentError('UNKNOWN_NAME', `'${text}' is no release of PyTorch: write 2.7 or 2.7.1`);
  if (build !== undefined && !build.startsWith('cu')) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `PyTorch ${text} is not built for CUDA and brings no NCCL: give the NCCL that it uses with --nccl`,
    );
  }
  if (build !== undefined && build.startsWith('cu11')) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `wheels of PyTorch for CUDA 11 bring an NCCL of their own: ask one with torch.cuda.nccl.version(), and give it with --nccl`,
    );
  }
  const found = ncclOfTorch.find(([torch]) => torch === release);
  if (found !== undefined) return found[2]?.[build ?? ''] ?? found[1];
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `PyTorch ${release} is not in the table, which goes from ${first} to ${last}: ask it with torch.cuda.nccl.version(), and give that with --nccl`,
  );
}
