import type { LineRule } from './rule.js';

/** Words of launchers, schedulers and containers about jobs that did not start. */
export const startRules: readonly LineRule[] = [
  {
    code: 'launcher-slots',
    kind: 'fault',
    needles: ['not enough slots available'],
    problem: 'mpirun has fewer slots than ranks',
    cause: 'the hostfile, the allocation or the number of cores gives fewer slots than -np',
    remedy: 'slots=<GPUs> in the hostfile, --oversubscribe, or fewer ranks',
  },
  {
    code: 'ssh-failed',
    kind: 'fault',
    needles: [
      'host key verification failed',
      'permission denied (publickey',
      'ssh: connect to host',
      'ssh: could not resolve hostname',
      'ssh: handshake failed',
    ],
    pattern:
      /(Host key verification failed|Permission denied \(publickey|ssh: (?:connect to host|Could not resolve hostname) \S{1,100}[^\n]{0,80}|ssh: handshake failed[^\n]{0,60})/,
    explains: ['launcher-failed', 'exit-child', 'store-timeout', 'name-unresolved'],
    problem: 'the launcher cannot log in to a host by ssh: $1',
    cause: 'no key or host key for that host, no sshd in the container, another port, or a name that is not known',
    remedy:
      'ssh -o BatchMode=yes <host> hostname from the first host must work without a question; StrictHostKeyChecking=accept-new; the right port (plm_rsh_args)',
  },
  {
    code: 'launcher-failed',
    kind: 'fault',
    needles: [
      'unable to reliably start one or more daemons',
      'orted: command not found',
      'prted: command not found',
      'daemon has unexpectedly failed',
      'lost communication with a remote daemon',
      'unable to start the daemon',
    ],
    explains: ['exit-child'],
    problem: 'mpirun could not start its daemon on a host, or lost it',
    cause:
      'Open MPI is not installed there or not in PATH of a non-interactive shell, another version, a firewall between the daemons, or the host went down',
    remedy: 'mpirun --prefix <its folder>; the same Open MPI on all hosts; open all ports between them',
  },
  {
    code: 'command-missing',
    kind: 'fault',
    needles: ['error: execve(): ', "launcher '"],
    pattern: /error: execve\(\): (\S{1,200}): No such file|launcher '([\w-]{1,40})' not installed/,
    explains: ['exit-child', 'exit-signal', 'rank-exception'],
    problem: 'the launcher does not find $1$2 on a host',
    cause: 'it is not installed in this image or on that host, or not in PATH of a shell that nobody logs in to',
    remedy: 'run it by hand in the same container or on the same host; compare PATH and the mounts of all hosts',
  },
  {
    code: 'launcher-failed',
    kind: 'fault',
    needles: ['task launch for stepid', 'application launch failed'],
    pattern: /(?:Task launch for \S{1,40} failed on node (\S{1,100}):|[Aa]pplication launch failed)/,
    explains: ['exit-child', 'exit-signal'],
    problem: 'srun could not start its tasks[ on $1]',
    cause:
      'the slurmd of that host does not answer, or does not reach srun: a host that is down, a firewall, or ports outside of SrunPortRange',
    remedy: '`scontrol show node <name>` and the log of its slurmd; leave it out (--exclude)',
  },
  {
    code: 'launcher-pmi',
    kind: 'fault',
    needles: [
      "was not built with slurm's pmi support",
      'ompi was not built with slurm',
      'application appears to have been direct launched',
      'pmi2_init failed',
      'pmix_init failed',
      'pmi server not found',
    ],
    explains: ['exit-child'],
    problem: 'srun and the MPI of the program have no common PMI: ranks do not find each other, or each believes to be alone',
    cause: 'Open MPI was built without the PMI that srun offers',
    remedy: 'srun --mpi=pmix (srun --mpi=list shows what there is), or start by mpirun within the allocation',
  },
  {
    code: 'mpi-interface',
    kind: 'failure',
    needles: [
      'btl_tcp',
      'unable to complete a tcp connection',
      'accepted a tcp connection from what appears to be',
      'open mpi failed to tcp connect',
      'tcp connection to another process',
    ],
    pattern:
      /(?:btl_tcp\S{0,60}[^\n]{0,160}(?:failed|refused|unreachable|timed out|No route)[^\n]{0,60}|unable to complete a TCP connection|accepted a TCP connection from what appears|Open MPI failed to TCP connect|TCP connection to another process)/,
    explains: ['exit-child', 'remote-closed'],
    problem: 'MPI itself, not NCCL, cannot connect ranks by TCP',
    cause: 'Open MPI tries an interface that other hosts cannot reach (docker0, virbr0, a management network), or a firewall',
    remedy:
      'mpirun --mca btl_tcp_if_include <interface or subnet> --mca oob_tcp_if_include <the same>; open all ports between the hosts',
  },
  {
    code: 'gloo-interface',
    kind: 'fault',
    needles: [
      'gloo connectfullmesh failed',
      'unable to resolve hostname to a (local) address',
      'gloo/transport/tcp/device.cc',
      'makedeviceforhostname',
    ],
    pattern:
      /(Gloo connectFullMesh failed[^\n]{0,160}|[Uu]nable to resolve hostname to a \(local\) address|unable to find address for: \S{1,60}|makeDeviceForHostname[^\n]{0,100})/,
    explains: ['exit-child', 'store-timeout', 'remote-closed'],
    problem: 'Gloo, not NCCL, cannot connect ranks: $1',
    cause: "a host's name stands for 127.0.x.x or for an interface that others cannot reach, or a firewall is in between",
    remedy:
      'GLOO_SOCKET_IFNAME=<the interface that all hosts share>; `getent hosts $(hostname)` must give the address of that interface',
  },
  {
    code: 'scheduler-refused',
    kind: 'fault',
    needles: [
      'requested node configuration is not available',
      'unable to allocate resources',
      'unable to create step',
      'invalid generic resource',
      'failedscheduling',
      'insufficient nvidia.com/gpu',
      'insufficient cpu',
      'insufficient memory',
      'no available node types can fulfill',
      'unable to confirm allocation',
      'no healthy devices present',
      'exceeds available gpus',
      'exceeds the total number of available gpus',
    ],
    pattern:
      /(Requested node configuration is not available|Unable to (?:allocate resources|create step|confirm allocation)[^\n]{0,80}|Invalid generic resource|FailedScheduling[^\n]{0,120}|Insufficient (?:nvidia\.com\/gpu|cpu|memory)|No available node types can fulfill[^\n]{0,80}|no healthy devices present[^\n]{0,80}|[\w ()]{5,60}exceeds (?:the total number of )?available GPUs[^\n]{0,60})/i,
    explains: ['exit-child', 'store-timeout', 'init-unfinished'],
    problem: 'the scheduler cannot give what was asked for: $1',
    cause: 'more GPUs, memory or hosts than are free, exist or are healthy',
    remedy:
      'ask for less, or for what the hosts have; `kubectl describe pod`, `scontrol show node <name>`; `dmesg -T` (Xid) where GPUs are unhealthy',
  },
  {
    code: 'image-missing',
    kind: 'fault',
    needles: ['imagepullbackoff', 'errimagepull', 'failed to pull image', 'manifest unknown'],
    explains: ['store-timeout', 'init-unfinished'],
    problem: 'a container could not be started: its image cannot be pulled',
    cause: 'a wrong name or tag, a registry that needs a login, or no network',
    remedy: '`kubectl describe pod`; docker pull <image> on that host',
  },
  {
    code: 'gpu-none',
    kind: 'fault',
    needles: [
      'nvidia-container-cli: ',
      'could not select device driver',
      'failed to create nvidia container',
      'nvidia-smi has failed because it couldn',
      'no devices were found',
    ],
    pattern:
      /(nvidia-container-cli: [^\n]{0,120}|could not select device driver[^\n]{0,60}|NVIDIA-SMI has failed because it couldn't communicate|No devices were found)/i,
    explains: ['exit-child', 'init-unfinished', 'store-timeout'],
    problem: 'a host or container has no GPU that works: $1',
    cause: 'the driver is not loaded (after an update of the kernel, or it failed), or the NVIDIA container toolkit is missing',
    remedy:
      '`nvidia-smi` and `dmesg -T` (NVRM) on the host itself; then nvidia-ctk runtime configure and a restart of the container runtime',
  },
  {
    code: 'host-hangs',
    kind: 'fault',
    needles: [
      'soft lockup',
      'hard lockup',
      'kernel panic',
      'rcu_sched detected stalls',
      'rcu: info: rcu_',
      'blocked for more than',
    ],
    pattern:
      /(?:BUG: (?:soft|hard) lockup|Kernel panic|rcu\S{0,20} (?:detected|self-detected) stalls?|task \S{1,60}:\d{1,9} blocked for more than)[^\n]{0,80}/,
    explains: ['watchdog-timeout', 'remote-closed', 'ib-retry-exceeded', 'exit-signal', 'collective-stuck', 'rank-behind'],
    problem: 'the kernel of a host hangs, or a task in it',
    cause: 'a driver, a file system (NFS, Lustre) that does not answer, or the hardware',
    remedy: '`dmesg -T` around that time; the state of network file systems; drain the host if it comes back',
  },
  {
    code: 'disk-full',
    kind: 'fault',
    needles: ['no space left on device', 'disk quota exceeded'],
    pattern:
      /(?:OSError|IOError|Errno 28|write|open|copy|PytorchStreamWriter|unable to write)[^\n]{0,200}(?:No space left on device|Disk quota exceeded)|(?:No space left on device|Disk quota exceeded)[^\n]{0,100}(?:'\/|: \/)/i,
    except: /\/dev\/shm|<\/torch_|shm|fallocate/,
    explains: ['exit-child', 'remote-closed', 'watchdog-timeout', 'rank-exception'],
    problem: 'a disk is full, or a quota is reached',
    cause: 'checkpoints, caches, logs or core files',
    remedy: '`df -h` on that host; the quota of the user; delete old checkpoints',
  },
];
