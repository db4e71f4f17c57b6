import { InvalidArgumentError } from '../../errors.js';

/** A release of PyTorch and the NCCL in its wheels. */
interface TorchRelease {
  readonly release: string;
  /** In the wheels of PyPI, and of all builds that `others` does not name. */
  readonly nccl: string;
  /** Builds for versions of CUDA. */
  readonly builds: readonly string[];
  readonly others?: Readonly<Record<string, string>>;
}

/**
 * The NCCL of each release of PyTorch: the requirement of its wheels on PyPI for x86-64 Linux (package nvidia-nccl-cu12 or
 * nvidia-nccl-cu13), then that of builds for other versions of CUDA where it differs. The source of builds, and from 2.10 on of
 * NCCL, is the table in PyTorch's RELEASE.md (pytorch/pytorch#190386).
 */
export const torchReleases: readonly TorchRelease[] = [
  { release: '2.1', nccl: '2.18.1', builds: ['cu118', 'cu121'] },
  { release: '2.2', nccl: '2.19.3', builds: ['cu118', 'cu121'] },
  { release: '2.3', nccl: '2.20.5', builds: ['cu118', 'cu121'] },
  { release: '2.4', nccl: '2.20.5', builds: ['cu118', 'cu121', 'cu124'] },
  { release: '2.5', nccl: '2.21.5', builds: ['cu118', 'cu121', 'cu124'] },
  { release: '2.6', nccl: '2.21.5', builds: ['cu118', 'cu124', 'cu126'] },
  { release: '2.7', nccl: '2.26.2', builds: ['cu118', 'cu126', 'cu128'] },
  { release: '2.8', nccl: '2.27.3', builds: ['cu126', 'cu128', 'cu129'] },
  { release: '2.9', nccl: '2.27.5', builds: ['cu126', 'cu128', 'cu130'] },
  { release: '2.10', nccl: '2.27.5', builds: ['cu126', 'cu128', 'cu130'], others: { cu130: '2.28.9' } },
  { release: '2.11', nccl: '2.28.9', builds: ['cu126', 'cu128', 'cu130'] },
  { release: '2.12', nccl: '2.29.7', builds: ['cu126', 'cu130', 'cu132'], others: { cu126: '2.29.3' } },
  { release: '2.13', nccl: '2.29.7', builds: ['cu126', 'cu130', 'cu132'], others: { cu126: '2.29.3' } },
];

/**
 * The version of NCCL in the wheels of a release of PyTorch: `2.7`, `2.7.1` or `2.7.1+cu128`.
 *
 * @throws InvalidArgumentError `UNKNOWN_NAME` for a release or a build that is not in the table, and for wheels without
 *   CUDA
 */
export function ncclInTorch(text: string): string {
  const [, release, build] = /^v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?(?:\+([\w.]+))?$/.exec(text.trim()) ?? [];
  const first = torchReleases[0]?.release ?? '';
  const last = torchReleases.at(-1)?.release ?? '';
  if (release === undefined)
    throw new InvalidArgumentError('UNKNOWN_NAME', `'${text}' is no release of PyTorch: write 2.7 or 2.7.1`);
  if (build !== undefined && !build.startsWith('cu')) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `PyTorch ${text} is not built for CUDA and brings no NCCL: give the NCCL that it uses with --nccl`,
    );
  }
  const found = torchReleases.find((each) => each.release === release);
  if (found === undefined) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `PyTorch ${release} is not in the table, which goes from ${first} to ${last}: ask it with torch.cuda.nccl.version(), and give that with --nccl`,
    );
  }
  if (build === undefined) return found.nccl;
  if (!found.builds.includes(build)) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `PyTorch ${release} has no wheels for ${build}, only for ${found.builds.join(', ')}: write one of these, or give NCCL's version with --nccl`,
    );
  }
  if (build.startsWith('cu11')) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `wheels of PyTorch for CUDA 11 bring an NCCL of their own: ask one with torch.cuda.nccl.version(), and give it with --nccl`,
    );
  }
  return found.others?.[build] ?? found.nccl;
}
