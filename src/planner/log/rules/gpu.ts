import type { LineRule } from './rule.js';

/** CUDA's errors come as `Cuda failure 2 'out of memory'`, `CUDA error: out of memory`, `cudaErrorMemoryAllocation`. */
const cuda = (text: string): RegExp => new RegExp(String.raw`(?:cuda|hip)(?: failure| error|Error|_ERROR)[^\n]{0,120}?(?:${text})`, 'i');

/** GPUs, NVLink, P2P, NVLS and the driver. */
export const gpuRules: readonly LineRule[] = [
  {
    code: 'p2p-broken', kind: 'fault', needles: ['p2p is disabled between nvlink connected gpus'], pattern: /GPUs (\d{1,3}) and (\d{1,3})/, explains: ['shm-despite-nvlink', 'p2p-refused'],
    problem: 'P2P over NVLink does not work between GPUs[ $1 and $2], though NVLink connects them',
    cause: 'a hardware or driver fault: NVLink errors, a GPU that needs a reset, a fabric manager that does not run', remedy: 'nvidia-smi nvlink -s; nvidia-smi topo -p2p r; systemctl status nvidia-fabricmanager; reset or replace the GPU; do not hide it with NCCL_IGNORE_DISABLED_P2P=1',
    source: 'NVIDIA/nccl#2329',
  },
  {
    code: 'p2p-refused', kind: 'risk', needles: ['p2p is disabled between connected gpus'], pattern: /GPUs (\d{1,3}) and (\d{1,3})/, explains: ['shm-despite-nvlink'],
    problem: 'P2P is disabled between connected GPUs[ (such as $1 and $2)]: data goes through the host\'s memory, or NCCL hangs where that fails too',
    cause: 'the driver refuses P2P: a virtual machine, PCIe ACS or an IOMMU, GeForce cards, or containers that do not share the GPUs',
    remedy: 'nvidia-smi topo -p2p r; switch ACS and the IOMMU off in BIOS and kernel, or give the VM the whole PCIe switch; NCCL_P2P_DISABLE=1 if a hang must end now', source: 'vllm-project/vllm#14025',
  },
  {
    code: 'p2p-refused', kind: 'risk', needles: ['peer access is not supported', 'peer access unsupported', 'could not enable p2p between dev', 'peer query failed between dev', 'failed to peer with device'], except: /peer mapping resources|too many peers/, pattern: /(?:(?:between dev |with device )(\S{1,40})|peer access (?:is not |un)supported)/, explains: ['shm-despite-nvlink'],
    problem: 'the driver refuses P2P[ for device $1]', cause: 'ACS or an IOMMU, a virtual machine, or a GPU in a bad state', remedy: 'nvidia-smi topo -p2p r; switch ACS and the IOMMU off; reset the GPU',
  },
  {
    code: 'p2p-unsupported', kind: 'note', needles: ['p2p not supported between gpu'],
    problem: 'GPUs of this host have no P2P: their data goes through the host\'s memory', cause: 'the cards or the driver do not support it (GeForce), or ACS or a VM forbids it', remedy: 'nvidia-smi topo -p2p r says which',
  },
  {
    code: 'nvls-bind', kind: 'fault', needles: ['failed to bind nvlink sharp'], explains: ['cuda-state', 'calls-failed'],
    problem: 'NVLink SHARP (NVLS) memory cannot be bound', cause: 'the fabric manager or the NVSwitches are not in order', remedy: 'systemctl restart nvidia-fabricmanager; nvidia-smi -q | grep -A4 Fabric must say Completed, Success; NCCL_NVLS_ENABLE=0 goes around it at a cost',
    source: 'NVIDIA/nccl#1788',
  },
  {
    code: 'nvls-failed', kind: 'fault', needles: ['transport/nvls.cc', 'nvls.cc:'], pattern: /nvls\.cc:\d{1,5} (?:\([^)]{1,60}\) )?NCCL WARN .{0,20}(?:cuda|CUDA) (?:failure|error) ?(\d{0,4}) ?'?([^']{0,100})/i, explains: ['cuda-state', 'cuda-unsupported', 'cuda-invalid', 'cuda-memory', 'calls-failed'],
    problem: 'the driver refused a multicast object of NVLink SHARP (NVLS)[, CUDA error $1][: $2]',
    cause: 'the fabric manager was restarted without a reset of the GPUs, is not running or does not fit the driver, a VM or container lacks the right, or multicast resources are used up',
    remedy: 'systemctl status nvidia-fabricmanager (same version as the driver); nvidia-smi -q | grep -A4 Fabric; stop all jobs, reset the GPUs or reboot; NCCL_NVLS_ENABLE=0 goes around it at a cost of bandwidth', source: 'NVIDIA/nccl#1788',
  },
  {
    code: 'imex', kind: 'fault', needles: ['is available but not working on this system', 'imex'], pattern: /MNNVL[^\n]{0,60}not working|check the IMEX|IMEX (?:channel|daemon|domain)[^\n]{0,60}(?:fail|not|error)/i,
    problem: 'multi-node NVLink (MNNVL) does not work: IMEX is not set up', cause: 'the IMEX daemon or its channel is missing in this host or container', remedy: 'systemctl status nvidia-imex; nvidia-imex-ctl -N; ls /dev/nvidia-caps-imex-channels; NCCL_MNNVL_ENABLE=0 goes around it',
  },
  {
    code: 'nvlink-fabric-not-ready', kind: 'fault', needles: ['system not yet initialized', 'cudaerrorsystemnotready', 'error 802'], pattern: /system not yet initialized|cudaErrorSystemNotReady|error 802/i,
    problem: 'CUDA says that the system is not yet initialized (802)', cause: 'the fabric manager is not running or does not fit the driver (machines with NVSwitch)', remedy: 'systemctl restart nvidia-fabricmanager; its version must equal the driver\'s (nvidia-smi)',
  },
  {
    code: 'wrong-build', kind: 'fault', needles: ['exceeds device/fn maxsharedmem', 'no kernel image is available', 'invalid device function', 'ptx was compiled with an unsupported toolchain', 'unsupported ptx'], explains: ['cuda-invalid', 'calls-failed', 'init-unfinished'],
    pattern: /(maxSharedMem|no kernel image is available|invalid device function|PTX)/i,
    problem: 'NCCL (or PyTorch) was built for other GPUs than this one[ ($1)]', cause: 'the library has no kernels for this GPU\'s architecture: an NCCL or CUDA too old for it', remedy: 'install a build for this GPU (nvidia-nccl-cu12 of the latest version; PyTorch for a newer CUDA); cuobjdump --list-elf libnccl.so.2 lists what it has',
    source: 'NVIDIA/nccl#1637',
  },
  {
    code: 'driver-too-old', kind: 'fault', needles: ['cuda driver version is insufficient', 'cuda driver version found is', 'nvidia driver on your system is too old', 'not supported in the installed cuda driver', 'forward compatibility was attempted', 'insufficientdriver'],
    problem: 'the NVIDIA driver is too old for the CUDA or NCCL in use', cause: 'the image has a newer CUDA than the host\'s driver supports', remedy: 'nvidia-smi shows the newest CUDA that the driver supports: update the driver or take an image with an older CUDA',
  },
  {
    code: 'driver-mismatch', kind: 'fault', needles: ['driver/library version mismatch', 'nvrm: api mismatch'],
    problem: 'the NVIDIA kernel module and its libraries have different versions', cause: 'the driver was updated without a reboot, or an image brings its own driver libraries', remedy: 'reboot the host or reload the modules; do not install driver libraries in images',
  },
  {
    code: 'gpu-ecc', kind: 'fault', needles: ['uncorrectable ecc', 'cudaerroreccuncorrectable'], explains: ['cuda-generic', 'remote-closed', 'watchdog-timeout'],
    problem: 'a GPU has an uncorrectable memory error (ECC)', cause: 'broken GPU memory', remedy: 'nvidia-smi -q -d ECC,ROW_REMAPPER on that host; drain it; reset or replace the GPU',
  },
  {
    code: 'gpu-nvlink-error', kind: 'fault', needles: ['uncorrectable nvlink error', 'nvlinkuncorrectable'], explains: ['cuda-generic', 'remote-closed', 'watchdog-timeout'],
    problem: 'an NVLink has an uncorrectable error', cause: 'a broken link, bridge or NVSwitch port', remedy: 'nvidia-smi nvlink -e; dmesg -T | grep -i xid; drain the host',
  },
  {
    code: 'gpu-lost', kind: 'fault', needles: ['gpu is lost', 'unable to determine the device handle for gpu', 'gpu has fallen off the bus'], except: /NVRM: Xid/, explains: ['cuda-generic', 'remote-closed', 'watchdog-timeout'],
    problem: 'a GPU is gone from the PCIe bus', cause: 'power, temperature, the PCIe link or the GPU itself', remedy: 'dmesg -T | grep -i xid; power-cycle the host; replace the GPU if it comes back',
  },
  {
    code: 'gpu-none', kind: 'fault', needles: ['no cuda-capable device is detected', 'no cuda gpus are available', 'failed to initialize nvml', 'nvmlinit_v2 failed', 'nvmlinit_v2() failed', 'nvmlinit() failed'], except: /version mismatch/,
    problem: 'the process sees no GPU', cause: 'CUDA_VISIBLE_DEVICES is empty, the container has no GPU, or the driver is not loaded', remedy: 'nvidia-smi -L in the same container; docker run --gpus all; Kubernetes: the nvidia.com/gpu resource',
  },
  {
    code: 'gpu-duplicate', kind: 'fault', needles: ['duplicate gpu detected', 'multiple ranks are using the same gpu'], pattern: /(?:rank (\d{1,7}) and rank (\d{1,7})[^\n]{0,60}|same GPU)/, explains: ['calls-failed', 'nccl-usage', 'remote-closed'],
    problem: 'two ranks use the same GPU[ (rank $1 and rank $2)]', cause: 'the program does not choose a GPU per rank, more ranks than GPUs were started, or two hosts have one host name and NCCL_HOSTID', remedy: 'torch.cuda.set_device(local_rank) or cudaSetDevice before NCCL; start one rank per GPU',
  },
  {
    code: 'gpu-ordinal', kind: 'fault', needles: ['invalid device ordinal'],
    problem: 'a rank chose a GPU that does not exist (invalid device ordinal)', cause: 'more ranks per host than visible GPUs, or CUDA_VISIBLE_DEVICES that hides some', remedy: 'nvidia-smi -L; start as many ranks per host as it shows',
  },
  {
    code: 'cuda-memory', kind: 'fault', needles: ['out of memory', 'cudaerrormemoryallocation', 'failed to cuda calloc', 'failed to cuda malloc'], except: /oom[-_ ]kill|Out of memory: Kill|host memory/i,
    pattern: /(?:cuda|hip|gpu)[^\n]{0,160}out of memory|out of memory[^\n]{0,80}(?:cuda|gpu|GiB)|OutOfMemoryError|cudaErrorMemoryAllocation|Failed to CUDA (?:c|m)alloc/i, explains: ['remote-closed', 'watchdog-timeout', 'calls-failed', 'nccl-unhandled-cuda'],
    problem: 'a GPU ran out of memory', cause: 'the framework left none for NCCL\'s buffers, or another process holds it', remedy: 'nvidia-smi on that host; lower the batch or the allocator\'s share; NCCL needs up to 1 GiB a GPU: fewer channels (NCCL_MAX_NCHANNELS) or communicators need less',
  },
  {
    code: 'cuda-illegal-access', kind: 'fault', needles: ['illegal memory access', 'device-side assert', 'misaligned address', 'unspecified launch failure', 'illegal instruction was encountered'], pattern: /(illegal memory access|device-side assert|misaligned address|unspecified launch failure|illegal instruction)/i,
    explains: ['remote-closed', 'watchdog-timeout', 'nccl-unhandled-cuda', 'cuda-generic'],
    problem: 'a kernel crashed on the GPU ($1)', cause: 'a bug in a kernel of the program, which NCCL only notices; seldom a faulty GPU', remedy: 'run that rank with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer; look at dmesg for Xid 31 or 13 on its host',
  },
  {
    code: 'cuda-ipc', kind: 'failure', needles: ['cudaipc', 'cuda ipc', 'mapping of buffer object failed', 'invalid resource handle'], pattern: /cudaIpc\w{4,20}[^\n]{0,40}(?:fail|error)|failed to open CUDA IPC|cuda IPC[^\n]{0,40}(?:fail|error)|mapping of buffer object failed|p2p\.cc:\d{1,5} NCCL WARN Cuda failure[^\n]{0,40}invalid resource handle/i,
    problem: 'GPU memory of another process cannot be mapped (CUDA IPC)', cause: 'containers or processes that do not share PID and IPC namespaces, memory of an allocator that IPC does not know (expandable_segments, cudaMallocAsync), a VM or WSL without IPC, or BAR space used up',
    remedy: 'docker run --ipc=host --pid=host; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False; NCCL_P2P_DISABLE=1 to confirm', explains: ['cuda-generic', 'calls-failed'],
  },
  {
    code: 'cuda-peers', kind: 'fault', needles: ['peer mapping resources exhausted', 'too many peers'],
    problem: 'a GPU can map no more peers (CUDA allows 8)', cause: 'more than nine GPUs with P2P in one host, or several processes with many communicators', remedy: 'NCCL_P2P_LEVEL=PXB or lower limits the peers; 2.20 and later with NCCL_CUMEM_ENABLE=1 avoid it',
  },
  {
    code: 'cuda-unsupported', kind: 'failure', needles: ['operation not supported', 'os call failed or operation not supported'], pattern: cuda('operation not supported'),
    problem: 'the driver does not support a call that NCCL needs', cause: 'a virtual GPU, WSL, MIG, or a container without the right; often CUDA IPC or the virtual-memory API', remedy: 'NCCL_CUMEM_ENABLE=0 and NCCL_P2P_DISABLE=1 one by one show which; update driver and NCCL',
    explains: ['calls-failed', 'nccl-unhandled-cuda'],
  },
  {
    code: 'cuda-fork', kind: 'failure', needles: ['cannot re-initialize cuda in forked subprocess'],
    problem: 'CUDA was used before a fork', cause: 'the program starts workers by fork after it used the GPU', remedy: 'multiprocessing start method spawn (VLLM_WORKER_MULTIPROC_METHOD=spawn)',
  },
  {
    code: 'cuda-init', kind: 'risk', needles: ['\'initialization error\'', 'failure 3 '], pattern: cuda('initialization error'),
    problem: 'CUDA could not be initialized in a process', cause: 'a fork after CUDA was used, or a GPU in a bad state', remedy: 'start workers by spawn; nvidia-smi on that host',
  },
  {
    code: 'cuda-invalid', kind: 'failure', needles: ['cuda failure', 'cuda error'], pattern: cuda('invalid argument|named symbol not found'),
    problem: 'a CUDA call of NCCL got an invalid argument', cause: 'driver and NCCL do not fit, or memory of an allocator that NCCL cannot handle', remedy: 'update the driver, or NCCL_CUMEM_ENABLE=0 and NCCL_CUMEM_HOST_ENABLE=0 to go around it', explains: ['calls-failed'],
  },
  {
    code: 'cuda-state', kind: 'failure', needles: ['cuda failure', 'cuda error'], pattern: cuda('cannot be performed in the present state|operation not permitted'),
    problem: 'the driver refused a call in its present state', cause: 'resources of the fabric (NVLS, IMEX) that are not ready or not permitted', remedy: 'nvidia-smi -q | grep -A4 Fabric; NCCL_NVLS_ENABLE=0 and NCCL_MNNVL_ENABLE=0 show which', explains: ['calls-failed'],
  },
  {
    code: 'cuda-generic', kind: 'symptom', needles: ['cuda failure', 'cuda error', 'cudaerror', 'hip failure'], pattern: /(?:cuda|hip) (?:failure|error)(?:: | )?(?:\d{1,4} )?'?([^'\n]{0,80})/i, except: /unhandled cuda|peer access is already enabled|out of memory|invalid argument|operation not supported|peer access|installed CUDA driver|on this OS|present state|not permitted|illegal memory|device-side|misaligned|unspecified launch|initialization error|ordinal|no kernel image|invalid device function|IPC|mapping of buffer|ECC|NVLink error|insufficient|driver shutting down|no CUDA-capable|peer mapping|not yet init/i,
    problem: 'a CUDA call of NCCL failed[: $1]', cause: 'often an earlier error of a kernel on that GPU', remedy: 'look for the first CUDA error of that rank; run it with CUDA_LAUNCH_BLOCKING=1; dmesg -T | grep -i xid',
  },
  {
    code: 'iommu', kind: 'risk', needles: ['missing "iommu=pt"', 'missing \\"iommu=pt'],
    problem: 'the kernel runs without iommu=pt, which can hang or crash P2P', cause: 'the kernel command line lacks iommu=pt', remedy: 'add iommu=pt to GRUB_CMDLINE_LINUX, update-grub, reboot; cat /proc/cmdline shows it', source: 'ROCm/vllm#390',
  },
  {
    code: 'numa-balancing', kind: 'risk', needles: ['numa auto balancing enabled', 'numa balancing enabled'],
    problem: 'NUMA balancing of the kernel is on, which makes collectives slow and uneven', cause: 'kernel.numa_balancing is 1', remedy: 'sysctl -w kernel.numa_balancing=0',
  },
  {
    code: 'acs', kind: 'cost', needles: ['acs is enabled', 'acs enabled', 'disable acs'], except: /HINT/,
    problem: 'PCIe ACS is on: P2P traffic takes the way through the CPU', cause: 'BIOS or kernel switched ACS on (virtualisation)', remedy: 'lspci -vvv | grep ACSCtl; switch it off in the BIOS or by setpci',
  },
  {
    code: 'mig', kind: 'cost', needles: ['mig mode', 'mig device'], pattern: /MIG[^\n]{0,80}(?:not supported|cannot|disable|no P2P)/i,
    problem: 'a GPU is split by MIG, which P2P and NCCL do not span', cause: 'MIG mode is on', remedy: 'nvidia-smi -mig 0',
  },
];
