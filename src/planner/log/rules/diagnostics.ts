import type { LineRule } from './rule.js';

/**
 * Reports of NCCL's own diagnostics since 2.31 (NCCL_RUN_DIAGNOSTICS, NCCL_RUN_RAS_DIAGNOSTICS, `ncclras -D`): lines
 * `node1:123 NCCL DIAG [INFO] …` of the process with rank 0. Lines with `[OK]` say that a check found nothing.
 */
export const diagnosticsRules: readonly LineRule[] = [
  {
    code: 'diag-p2p',
    kind: 'fault',
    needles: ['nccl diag [info] p2p: '],
    pattern:
      /DIAG \[INFO\] p2p: (?:only (\d{1,9})\/(\d{1,9}) GPU|(?:write mismatch|read mismatch|peer-memory import failed|topology check failed|launch\/check failed|local CUDA setup failed|destination buffer unavailable)(?: srcRank=(\d{1,7})[^\n]{0,80}? dstRank=(\d{1,7}))?)/,
    explains: ['p2p-refused', 'cuda-ipc', 'nccl-unhandled-cuda', 'watchdog-timeout'],
    problem: "NCCL's P2P test failed[: $1 of $2 accesses between GPUs passed][ from rank $3 to rank $4]",
    cause: 'the link between these GPUs, the driver, PCIe ACS or an IOMMU, or containers that do not share the GPUs',
    remedy:
      '`nvidia-smi topo -p2p r`; `nvidia-smi nvlink -s`; `dmesg -T` (Xid, AER); a mismatch of data is broken hardware or a wrong IOMMU mapping: take the GPUs out of the job',
    source: 'docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/diagnostics.html',
  },
  {
    code: 'gpu-ecc',
    kind: 'fault',
    needles: ['nccl diag [info] ecc: uncorrected'],
    pattern: /on rank\(s\) \{([\d,.]{1,60})\}/,
    explains: ['cuda-generic', 'remote-closed', 'watchdog-timeout', 'xid-memory'],
    problem: 'a GPU has uncorrectable memory errors[: that of rank $1]',
    cause: 'broken memory of the GPU; the counters count since the driver was loaded',
    remedy: '`nvidia-smi -q -d ECC`; reset the GPU or replace it',
  },
  {
    code: 'nvlink-degraded',
    kind: 'fault',
    needles: ['nccl diag [info] nvlink: '],
    pattern: /NVLink: (?:inactive link|[^\n]{0,40}(?:mismatch|inconsistent))[^\n]{0,60}?(?:on )?rank\(s\) \{([\d,.]{1,60})\}/,
    problem: 'NVLinks are down or differ[ on rank $1]',
    cause: 'links that did not train, a GPU that needs a reset, or a fabric manager that does not run',
    remedy: '`nvidia-smi nvlink -s` on its host; reset the GPU or drain the host',
  },
  {
    code: 'diag-differs',
    kind: 'risk',
    needles: [
      'nccl diag [info] nccl environment: mismatch',
      'nccl diag [info] cuda driver version: mismatch',
      'nccl diag [info] gpu inventory: ',
    ],
    pattern:
      /\[INFO\] (NCCL environment|CUDA driver version|GPU inventory): (?:count |model )?mismatch(?:[^\n]{0,80} for (NCCL_\w{1,60}))?/,
    problem: 'ranks differ in $1[: $2]',
    cause: 'hosts with other images, drivers, GPUs or settings',
    remedy:
      'the lines after it list the ranks by value; set NCCL_* in one place for all ranks; install one driver; a count that differs is a GPU that is missing',
  },
  {
    code: 'gpu-busy-copies',
    kind: 'symptom',
    needles: ['progress counter monitor: counter dma still pending after'],
    pattern: /after (\d{1,9}\.\d)s \(cudaDev (\d{1,4})/,
    problem: "GPU[ $2] has not copied NCCL's progress counters for[ $1 s]: what RAS says about its progress may be old",
    cause: 'the GPU waits in a kernel that fills it, or it hangs',
    remedy: '`nvidia-smi` and `dmesg -T` (Xid) on its host; NCCL_PROGRESS_COUNTER_MONITOR_STALE_MS sets when this is said',
  },
];
