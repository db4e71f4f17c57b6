import { aftermath } from './codes.js';
import type { LineRule } from './rule.js';

/** Host memory, /dev/shm, limits of the system. */
export const memoryRules: readonly LineRule[] = [
  {
    code: 'shm-full',
    kind: 'fault',
    needles: ['posix_fallocate failed', '/dev/shm', 'shm.h:', 'shmutils', 'no space left on device'],
    pattern:
      /posix_fallocate failed|failed to extend \/dev\/shm|(?:\/dev\/shm|shm)[^\n]{0,200}No space left on device|No space left on device[^\n]{0,60}shm|fallocate[^\n]{0,40}No space left/,
    explains: ['shm-failed', 'calls-failed', 'cuda-invalid', 'init-unfinished', 'remote-closed'],
    problem: "/dev/shm is too small for NCCL's shared memory",
    cause: 'containers get 64 MiB by default, and NCCL needs some 10 MB per pair of GPUs; leftovers of dead jobs also fill it',
    remedy:
      '`df -h /dev/shm`; docker run --shm-size=1g --ulimit memlock=-1 or --ipc=host; Kubernetes: an emptyDir with medium: Memory on /dev/shm; rm /dev/shm/nccl-* of dead jobs',
    source: 'NVIDIA/nccl#606',
  },
  {
    code: 'shm-register',
    kind: 'fault',
    needles: ['shm.h:', 'shmutils.', 'transport/shm.cc:'],
    pattern: /shm(?:utils)?\.(?:h|cc):\d{1,5} (?:\([^)]{1,60}\) )?NCCL WARN Cuda failure/,
    explains: ['shm-failed', 'cuda-invalid', 'cuda-generic', 'cuda-unsupported', 'calls-failed'],
    problem: 'shared memory (/dev/shm) cannot be registered with CUDA',
    cause:
      '/dev/shm lies on a file system that cannot be pinned, locked memory is limited, a sandbox (gVisor) is in between, or the driver is at fault',
    remedy:
      '`ulimit -a` (docker run --ulimit memlock=-1); `df -h /dev/shm` must say tmpfs or shm; --shm-size=1g; NCCL_SHM_DISABLE=1 to confirm',
    source: 'NVIDIA/nccl#1518',
  },
  {
    code: 'shm-failed',
    kind: 'failure',
    needles: [
      'shared memory segment',
      'failed to open shared memory',
      'shm_open failed',
      'could not map /dev/shm',
      'unable to open shared memory',
      'failed to create shared memory',
      'shmutils.',
    ],
    explains: ['calls-failed', 'init-unfinished'],
    pattern:
      /(?:Error|WARN|fail)[^\n]{0,80}shared memory|shm_open failed|Could not map|shmutils\.cc:\d{1,5} [^\n]{0,70}WARN Call to open failed/i,
    except: /unlink|munmap/,
    problem: 'a shared-memory segment cannot be made or attached',
    cause: '/dev/shm is too small, not shared between the containers of one host, or not writable',
    remedy:
      '`df -h /dev/shm` in the container; docker run --shm-size=1g or --ipc=host; containers of one job on one host must share it',
    source: 'NVIDIA/nccl-tests#166',
  },
  {
    code: 'shm-full',
    kind: 'fault',
    needles: ['out of shared memory', 'nonexistent physical address', 'dataloader', 'insufficient shared memory', 'mm_iface'],
    pattern:
      /dataloader[^\n]{0,80}shared memory|out of shared memory|nonexistent physical address|insufficient shared memory|mm_iface[^\n]{0,80}failed to allocate/i,
    explains: ['exit-signal', 'exit-child', 'exit-crash', 'remote-closed'],
    problem: 'a process found no room in shared memory: /dev/shm is full',
    cause: "the container's /dev/shm (64 MiB by default) is used up",
    remedy:
      '`df -h /dev/shm` in the container; docker run --shm-size=8g or --ipc=host; Kubernetes: an emptyDir with medium: Memory on /dev/shm; else fewer workers of the DataLoader (num_workers)',
  },
  {
    code: 'oom-killed',
    kind: 'fault',
    needles: [
      'srun: error: ',
      'oom-kill',
      'oom_kill',
      'oomkilled',
      'out of memory: kill',
      'out-of-memory handler',
      'out of memory handler',
      'out_of_memory',
      'memory cgroup out of memory',
      'killed process',
    ],
    pattern:
      /srun: error: (?<host>[\w.\[\],-]{1,255}): tasks? [\d,-]{1,200}: Out[ -]Of[ -]Memory|node\/(?<node>[\w.-]{1,250}) [^\n]{0,40}[Oo]ut of memory|^(?<pod>[a-z0-9][\w.-]{1,250}) {1,80}\d{1,4}\/\d{1,4} {1,20}OOMKilled|oom[-_]?kill|OOMKilled|Out of memory: Kill|out[- ]of[- ]memory handler|Memory cgroup out of memory|Killed process|OUT_OF_MEMORY/i,
    except: /CUDA|potential root causes/,
    explains: aftermath,
    problem: 'the kernel killed a process because the host or its cgroup ran out of memory',
    cause: 'the job needs more host memory than it may use',
    remedy: '`dmesg -T` (oom-kill) on that host; ask for more memory, or fewer workers and smaller batches',
  },
  {
    code: 'threads-limit',
    kind: 'fault',
    needles: ['pthread_create failed', 'thread creation failed', 'failed to create thread', "can't start new thread"],
    explains: ['calls-failed', 'remote-closed'],
    problem: 'a thread cannot be created',
    cause: "the limit on processes (ulimit -u, the container's pids limit) or memory is reached",
    remedy: '`ulimit -a`; docker run --pids-limit=-1',
  },
  {
    code: 'files-limit',
    kind: 'fault',
    needles: ['too many open files', 'emfile'],
    explains: ['calls-failed', 'remote-closed', 'connect-failed'],
    problem: 'a process has too many files open',
    cause: 'the limit on open files is too low for so many connections',
    remedy: '`ulimit -a` in the job; docker run --ulimit nofile=1048576; LimitNOFILE in the service',
  },
  {
    code: 'memlock',
    kind: 'fault',
    needles: ['unable to pin host memory', 'failed to pin host memory', 'failed to pin memory'],
    explains: ['rank-exception', 'exit-child'],
    problem: 'host memory cannot be locked',
    cause: 'the limit on locked memory (RLIMIT_MEMLOCK) of the container, service or shell; else the host has too little memory',
    remedy:
      '`ulimit -a` in the container must say unlimited: docker run --ulimit memlock=-1, or LimitMEMLOCK=infinity of the service containerd',
    source: 'LMCache/LMCache-Ascend#5',
  },
  {
    code: 'memlock',
    kind: 'fault',
    needles: ['rlimit_memlock', 'max locked memory', 'memlock'],
    pattern: /(?:RLIMIT_MEMLOCK|memlock|max locked memory)[^\n]{0,80}(?:too|small|low|limit|32768|65536|64 ?K|insufficient)/i,
    except: /--ulimit|unlimited/,
    problem: 'the limit on locked memory is too low',
    cause: 'RLIMIT_MEMLOCK of the job',
    remedy:
      '`ulimit -a` in the job must say unlimited: limits.conf, docker run --ulimit memlock=-1, LimitMEMLOCK=infinity for slurmd',
  },
  {
    code: 'host-memory',
    kind: 'fault',
    needles: ['failed to malloc', 'returned null', 'cannot allocate memory', 'failed to cuda host alloc'],
    pattern:
      /OSError: \[Errno 12\] Cannot allocate memory|WARN[^\n]{0,80}(?:Failed to malloc|malloc[^\n]{0,40}returned null|Failed to CUDA host alloc|(?:mmap|malloc|fork|clone)[^\n]{0,60}Cannot allocate memory)/,
    problem: 'the host has no memory left',
    cause: "the job uses all of it or hits its cgroup's limit",
    remedy: '`free -g` and `dmesg -T` on that host; ask for more memory',
  },
];
