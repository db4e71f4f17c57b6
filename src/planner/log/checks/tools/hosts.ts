import type { LogFinding } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { hasEnded } from '../../job/outcome.js';
import { isSeen, onHost, outputsOf } from './outputs.js';

/** Memory, limits, services, packages and kernel of hosts. */
export function checkHosts(model: LogModel): LogFinding[] {
  return [
    ...sharedMemory(model),
    ...limits(model),
    ...memory(model),
    ...services(model),
    ...packages(model),
    ...modules(model),
    ...kernel(model),
  ];
}

/** A rank needs some 10 MB a peer; containers get 64 MiB by default. */
const SMALL_SHM_BYTES = 256 * 2 ** 20;
const FULL_PERCENT = 97;
/** A full /dev/shm ends processes by SIGBUS; one that was killed ran out of memory. */
const SIGKILL = 9;

function sharedMemory(model: LogModel): LogFinding[] {
  const mounts = outputsOf(model, 'df').flatMap((output) =>
    output.facts.rows.filter(({ mount }) => mount === '/dev/shm').map((row) => ({ row, on: onHost(output) })),
  );
  const isKilled = model.deaths.some(
    ({ how, helper }) => helper !== undefined && how.kind === 'signal' && how.signal === SIGKILL,
  );
  const explains = ['shm-failed', 'shm-register', 'calls-failed', 'init-unfinished', 'exit-signal'] as const;
  return mounts.flatMap(({ row, on }): LogFinding[] => {
    const size = row.sizeBytes === undefined ? '' : ` (${mebibytes(row.sizeBytes)})`;
    if (row.used >= FULL_PERCENT)
      return [
        {
          code: 'shm-full',
          severity: isKilled ? 'warning' : 'error',
          kind: isKilled ? 'risk' : 'fault',
          explains: isKilled ? [] : explains,
          problem: `/dev/shm${on} is full: ${row.used} % of it are used${size}`,
          cause: "the container's /dev/shm (64 MiB by default) is too small, or files of dead jobs fill it",
          remedy:
            'docker run --shm-size=8g or --ipc=host; Kubernetes: an emptyDir with medium: Memory on /dev/shm; rm /dev/shm/nccl-* of dead jobs',
          places: [row.place],
        },
      ];
    if ((row.sizeBytes ?? Infinity) > SMALL_SHM_BYTES) return [];
    const isSuspected =
      isSeen(model, 'shm-failed', 'shm-register') || model.deaths.some(({ how }) => how.kind === 'signal' && how.signal === 7);
    return [
      {
        code: 'shm-full',
        severity: isSuspected ? 'error' : 'info',
        kind: isSuspected ? 'fault' : 'note',
        explains,
        problem: `/dev/shm${on} is small${size}`,
        cause: 'containers get 64 MiB by default, and NCCL needs some 10 MB a pair of GPUs',
        remedy: 'docker run --shm-size=8g or --ipc=host; Kubernetes: an emptyDir with medium: Memory on /dev/shm',
        places: [row.place],
      },
    ];
  });
}

const SMALL_LOCKED_BYTES = 64 * 2 ** 20;
const FEW_FILES = 4096;

function limits(model: LogModel): LogFinding[] {
  return outputsOf(model, 'ulimit').flatMap((output): LogFinding[] => {
    const on = onHost(output);
    const locked = output.facts.limits.get('locked');
    const files = output.facts.limits.get('files');
    const findings: LogFinding[] = [];
    if (locked !== undefined && locked.value < SMALL_LOCKED_BYTES) {
      const isSuspected = isSeen(model, 'memlock', 'ib-resource', 'ib-memory-registration', 'shm-register', 'ofi-memory');
      findings.push({
        code: 'memlock',
        severity: isSuspected ? 'error' : 'info',
        kind: isSuspected ? 'fault' : 'note',
        explains: ['ib-resource', 'ib-memory-registration', 'ofi-memory', 'shm-register', 'calls-failed', 'init-unfinished'],
        problem: `the limit on locked memory${on} is ${locked.value / 1024} KiB: RDMA cannot register buffers`,
        cause: 'RLIMIT_MEMLOCK of the shell, service or container',
        remedy:
          'limits.conf, docker run --ulimit memlock=-1, LimitMEMLOCK=infinity for slurmd and containerd; `ulimit -a` in the job itself must say unlimited',
        places: [locked.place],
      });
    }
    if (files !== undefined && files.value < FEW_FILES && isSeen(model, 'files-limit'))
      findings.push({
        code: 'files-limit',
        severity: 'error',
        kind: 'fault',
        explains: ['calls-failed', 'remote-closed', 'connect-failed'],
        problem: `a process${on} may open ${files.value} files, and ran out of them`,
        cause: 'the limit on open files is too low for so many connections',
        remedy: 'docker run --ulimit nofile=1048576; LimitNOFILE in the service; `ulimit -a` in the job shows it',
        places: [files.place],
      });
    return findings;
  });
}

const LITTLE_MEMORY = 0.03;

function memory(model: LogModel): LogFinding[] {
  return outputsOf(model, 'free').flatMap(({ facts, ...output }): LogFinding[] => {
    if (facts.total <= 0 || facts.available > LITTLE_MEMORY * facts.total) return [];
    return [
      {
        code: 'host-memory',
        severity: 'warning',
        kind: 'failure',
        explains: ['exit-killed', 'exit-signal', 'calls-failed'],
        problem: `the memory of the host${onHost(output)} is used up: ${Math.round((100 * facts.available) / facts.total)} % of it are available`,
        cause: 'processes of this or another job, files in /dev/shm, or pages that are locked',
        remedy: 'look at the largest processes (top -o %MEM) and at /dev/shm; `dmesg -T` shows what the kernel killed',
        places: [facts.place],
      },
    ];
  });
}

function services(model: LogModel): LogFinding[] {
  const found = outputsOf(model, 'systemctl').flatMap((output) =>
    output.facts.services.map((service) => ({ ...service, on: onHost(output) })),
  );
  const needsFabric =
    isSeen(model, 'nvls-failed', 'nvls-bind', 'nvlink-fabric-not-ready', 'cuda-state', 'p2p-broken') ||
    outputsOf(model, 'topo').some(({ facts }) =>
      facts.rows.some(({ cells }) => cells.some((cell) => /^NV(?:6|12|18|36)$/.test(cell))),
    );
  return found.flatMap(({ name, state, detail, place, on }): LogFinding[] => {
    const isFabric = /fabricmanager/.test(name);
    if ((!isFabric && !/imex/.test(name)) || state === 'active') return [];
    const isFault = state === 'failed' || (isFabric ? needsFabric : isSeen(model, 'imex'));
    return [
      {
        code: isFabric ? 'nvlink-fabric-not-ready' : 'imex',
        severity: isFault ? 'error' : 'info',
        kind: isFault ? 'fault' : 'note',
        explains: ['nvls-failed', 'nvls-bind', 'cuda-state', 'imex', 'cuda-init', 'calls-failed', 'init-unfinished'],
        problem: `${isFabric ? 'the fabric manager' : 'the IMEX daemon'}${on} does not run: ${name} is ${state}${detail === '' ? '' : ` (${detail})`}`,
        cause: isFabric
          ? 'it did not start (another version than the driver, an NVSwitch or link that failed), or it was not enabled; a machine without NVSwitch needs none'
          : 'it did not start, or it is not configured (nodes_config.cfg); only multi-node NVLink needs it',
        remedy: `journalctl -u ${name} says why; start it, and reset the GPUs or reboot if CUDA was used in between`,
        places: [place],
      },
    ];
  });
}

function packages(model: LogModel): LogFinding[] {
  return outputsOf(model, 'pip').flatMap((output): LogFinding[] => {
    const nccl = output.facts.packages.filter(({ name }) => /^(?:nvidia-nccl|cupy-nccl|nccl$)/.test(name));
    const releases = new Set(nccl.map(({ version }) => version));
    const [first] = nccl;
    if (first === undefined || nccl.length < 2 || releases.size < 2) return [];
    const isSuspected = isSeen(model, 'symbol-missing', 'library-old', 'nccl-usage', 'version-mixed');
    return [
      {
        code: 'nccl-twice',
        severity: isSuspected ? 'error' : 'warning',
        kind: isSuspected ? 'fault' : 'risk',
        explains: ['symbol-missing', 'library-old', 'nccl-usage', 'nccl-invalid', 'version-mixed'],
        problem: `several packages with NCCL are installed${onHost(output)}: ${nccl.map(({ name, version }) => `${name} ${version}`).join(', ')}`,
        cause:
          'one was installed for another CUDA or by another framework; which one is loaded depends on the order of imports and on LD_LIBRARY_PATH',
        remedy: 'uninstall all but the one that PyTorch requires; `ldd` of libtorch_cuda.so shows what is loaded',
        places: nccl.map(({ place }) => place),
      },
    ];
  });
}

function modules(model: LogModel): LogFinding[] {
  return outputsOf(model, 'lsmod').flatMap(({ facts, ...output }): LogFinding[] => {
    const has = (name: string) => facts.modules.has(name);
    if (!has('nvidia') || (!has('mlx5_ib') && !has('ib_uverbs')) || has('nvidia_peermem') || has('nv_peer_mem')) return [];
    const isSuspected = isSeen(model, 'gdr-off', 'ib-memory-registration');
    return [
      {
        code: 'peermem-missing',
        severity: isSuspected ? 'warning' : 'info',
        kind: isSuspected ? 'fault' : 'note',
        explains: ['gdr-off', 'gdr-mixed', 'ib-memory-registration', 'bandwidth-low'],
        problem: `nvidia-peermem is not loaded${onHost(output)}: GPUDirect RDMA needs it, or DMA-BUF of the open kernel modules`,
        cause: 'it was not loaded, or it was built before the RDMA drivers were installed',
        remedy:
          'modprobe nvidia-peermem, and load it at boot (/etc/modules-load.d); reinstall the driver after the RDMA stack if it does not load; `lsmod` shows it',
        places: [facts.place],
      },
    ];
  });
}

function kernel(model: LogModel): LogFinding[] {
  return outputsOf(model, 'cmdline').flatMap(({ facts, ...output }): LogFinding[] => {
    const on = facts.options.find((option) => /^(?:intel_iommu|amd_iommu)=on$/.test(option));
    if (on === undefined || facts.options.includes('iommu=pt')) return [];
    return [
      {
        code: 'iommu-on',
        severity: hasEnded(model) ? 'info' : 'warning',
        kind: hasEnded(model) ? 'note' : 'risk',
        explains: ['bandwidth-low', 'iommu-fault'],
        problem: `the kernel${onHost(output)} runs with ${on} and without iommu=pt: the IOMMU translates every transfer of devices`,
        cause: 'it was switched on for virtual machines',
        remedy: 'iommu=pt (or off) on the kernel command line; `cat /proc/cmdline` after the reboot',
        places: [facts.place],
      },
    ];
  });
}

function mebibytes(bytes: number): string {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}
