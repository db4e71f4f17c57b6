import { aftermath, type LogFindingCode } from './codes.js';
import type { LineRule } from './rule.js';

const consequences: readonly LogFindingCode[] = [
  ...aftermath,
  'cuda-illegal-access',
  'gpu-lost',
  'exit-crash',
  'xid-cleanup',
  'bandwidth-low',
];

/** Lines of the kernel, `NVRM: Xid (PCI:0000:c1:00): 79, pid=…`, and of Kubernetes' device plugin. */
function xid(
  code: LogFindingCode,
  numbers: string,
  kind: LineRule['kind'],
  problem: string,
  cause: string,
  remedy: string,
): LineRule[] {
  const rule = { code, kind, problem, cause, remedy, explains: consequences, source: 'NVIDIA Xid catalogue' };
  const kernel: LineRule = {
    ...rule,
    needles: ['xid (pci', 'xid('],
    pattern: new RegExp(String.raw`\bXid ?\(PCI:([0-9a-fA-F:.]{3,16})\): (?:\d{1,3}, [^\n]{0,120}previous Xid )?(${numbers})\b`),
  };
  // `XidCriticalError: Xid=79 on Device=GPU-4cf8…; marking device as unhealthy.`
  const devicePlugin: LineRule = {
    ...rule,
    needles: ['xidcriticalerror'],
    pattern: new RegExp(String.raw`XidCriticalError: Xid=(?=\d{1,3} on Device=(GPU-[0-9a-fA-F-]{4,40}))(${numbers})\b`),
  };
  return [kernel, devicePlugin];
}

/** The kernel's log: Xid lines of the driver, NICs, PCIe, IOMMU. */
export const kernelRules: readonly LineRule[] = [
  ...xid(
    'xid-bus',
    '79',
    'fault',
    'GPU $1 has fallen off the bus (Xid 79)',
    'power, temperature, the PCIe link or the GPU itself',
    'drain the host; power-cycle it; replace the GPU if it comes back',
  ),
  ...xid(
    'xid-nvlink',
    '74|137|14[4-9]|150',
    'fault',
    'GPU $1 has NVLink errors (Xid $2)',
    'a bad NVLink, bridge, connector, or the GPU or NVSwitch at its other end',
    '`nvidia-smi nvlink -e`; drain the host; reseat or replace what has errors',
  ),
  ...xid(
    'xid-memory',
    '63',
    'failure',
    'rows of the memory of GPU $1 wait to be remapped, or pages to be retired (Xid 63)',
    'its memory had errors; the driver takes the rows or pages out of use at the next reset',
    'end all programs on the GPU, then nvidia-smi -r or a reboot; `nvidia-smi -q` (Remapped Rows, Pending); the GPU need not be replaced unless it comes back',
  ),
  ...xid(
    'xid-memory',
    '64',
    'fault',
    'rows of the memory of GPU $1 cannot be remapped, or pages not retired (Xid 64)',
    'its memory has errors, and no spare row of the bank is left',
    'drain the host; `nvidia-smi -q` (Remapped Rows, Remapping Failure Occurred); replace the GPU if it says Yes after a reset',
  ),
  ...xid(
    'xid-memory',
    '48|94|95|140|160',
    'fault',
    'GPU $1 has memory errors (Xid $2)',
    'uncorrectable ECC errors or rows that were remapped',
    '`nvidia-smi -q`; reset the GPU; replace it if remapping failed',
  ),
  ...xid(
    'xid-gsp',
    '119|120',
    'fault',
    'the GSP firmware of GPU $1 does not answer (Xid $2)',
    'a bug of driver or firmware, or a failing GPU',
    'reset the GPU or reboot; update the driver; NVreg_EnableGpuFirmware=0 goes around it where supported',
  ),
  ...xid(
    'xid-c2c',
    '121',
    'fault',
    'GPU $1 has errors on its link to the CPU, C2C (Xid 121)',
    'the C2C link was retrained or is bad',
    'reset the host; replace it if they come back',
  ),
  ...xid(
    'xid-hang',
    '62|109|110|122|123|143',
    'fault',
    'a unit of GPU $1 failed (Xid $2)',
    'driver, firmware or the GPU itself',
    'reset the GPU or reboot; replace it if it comes back',
  ),
  ...xid(
    'xid-kernel',
    '13|31|32|68|69',
    'failure',
    'a kernel on GPU $1 made an invalid access (Xid $2)',
    'a bug in a kernel of the program, which NCCL only notices; seldom a faulty GPU',
    'run that process with compute-sanitizer; if other programs fail on this GPU alone, test it (`dcgmi diag -r 3`)',
  ),
  ...xid(
    'xid-other',
    '8|38|56|57|58|61|66|78|92|96|137|155|156',
    'failure',
    'the driver reports Xid $2 of GPU $1',
    "see NVIDIA's catalogue of Xid errors",
    '`dcgmi diag -r 3`; look up the number',
  ),
  ...xid(
    'xid-cleanup',
    '43|45',
    'symptom',
    'the driver ended a program on GPU $1 (Xid $2)',
    'it follows another error or the end of the process',
    'look for an Xid before it, and for what ended the process',
  ),
  {
    code: 'xid-cleanup',
    kind: 'symptom',
    needles: ['xid (pci', 'xid('],
    pattern: /Xid ?\(PCI:([0-9a-fA-F:.]{3,16})\): 154\b(?:[^\n]{0,80} to 0x[0-9a-f]{1,2} \(([^)\n]{2,60})\))?/,
    problem: 'the driver asks for a recovery of GPU $1[: $2] (Xid 154)',
    cause: 'it follows another error, which has an Xid of its own',
    remedy: 'look for the Xid before or beside it; then do what it asks for: reset the GPU, reboot or drain the host',
    source: 'NVIDIA Xid catalogue',
  },
  {
    code: 'sxid',
    kind: 'fault',
    needles: ['sxid (pci', 'sxid('],
    pattern: /SXid ?\(PCI:([0-9a-fA-F:.]{4,16})\): (\d{4,6})[^\n]{0,20}Fatal/,
    except: /Non-fatal/,
    explains: consequences,
    problem: 'NVSwitch $1 has a fatal error (SXid $2)',
    cause: 'an NVLink of the switch or the switch itself',
    remedy: '`nvidia-smi nvlink -e`; restart the fabric manager after a reset of all GPUs; drain the host if it comes back',
  },
  {
    code: 'nic-link-down',
    kind: 'fault',
    needles: [
      'link down',
      'link is down',
      'cable unplugged',
      'lost carrier',
      'port module event',
      'nic link is down',
      'link status definitely down',
    ],
    pattern:
      /((?:mlx[45]\w{0,20}|bnxt\w{0,10}|ice|i40e)(?: [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)?(?: [a-z]\w{2,14}(?=: ))?|bond\d{1,3}(?:: \(slave \w{2,15}\))?|ib\d\w{0,10}|ens?\w{1,12}|eth\d{1,3}|rdma\d|irdma|efa)[^\n]{0,80}(?:[Ll]ink (?:is )?[Dd]own|status definitely down|unplugged|[Ll]ost carrier|High Temperature|Bus stuck|Bad or unsupported)/,
    explains: ['ib-retry-exceeded', 'ib-flush', 'remote-closed', 'watchdog-timeout', 'ib-event'],
    problem: 'a network link went down ($1)',
    cause: "cable, transceiver, switch port, or somebody's work on the fabric",
    remedy: "`ibstat` or `ip -br link` on that host; `mlxlink -d <device> -m`; the switch's log",
  },
  {
    code: 'nic-fault',
    kind: 'fault',
    needles: ['mlx5_core', 'mlx4_core', 'bnxt_en', 'netdev watchdog'],
    pattern:
      /NETDEV WATCHDOG: \S{1,40}[^\n]{0,40}timed out|(mlx[45]_core[^\n]{0,40}|bnxt_en[^\n]{0,40})(?:health|fw|firmware|FATAL|device's health|internal error|assert|timeout|poll)[^\n]{0,80}(?:compromised|fatal|error|stuck|fail|timeout)/i,
    explains: ['ib-retry-exceeded', 'ib-flush', 'ib-event', 'remote-closed', 'watchdog-timeout'],
    problem: "a NIC's firmware failed",
    cause: 'firmware or hardware of the NIC',
    remedy: 'mlxfwreset or a reboot; update the firmware; replace the NIC if it comes back',
  },
  {
    code: 'pcie-error',
    kind: 'fault',
    needles: ['aer:', 'pcie bus error'],
    pattern:
      /(?:AER: (?:Uncorrected|Multiple Uncorrected)|PCIe Bus Error: severity=Uncorrect\w{1,6})[^\n]{0,80}?([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d)?/,
    explains: consequences,
    problem: 'PCIe reports uncorrected errors',
    cause: 'a bad slot, riser, retimer or card',
    remedy: '`lspci -vvv` for the device; reseat or replace it',
  },
  {
    code: 'iommu-fault',
    kind: 'fault',
    needles: ['dmar:', 'io_page_fault', 'amd-vi:'],
    pattern: /DMAR:[^\n]{0,60}(?:fault|DMA (?:Read|Write))|IO_PAGE_FAULT/,
    explains: consequences,
    problem: 'the IOMMU stopped a transfer between devices',
    cause: 'P2P or GPUDirect RDMA through an IOMMU that is switched on',
    remedy: 'iommu=pt (or off) on the kernel command line, and ACS off in the BIOS',
  },
  {
    code: 'machine-check',
    kind: 'fault',
    needles: ['mce: [hardware error]', 'hardware error', 'edac'],
    pattern: /(?:mce: )?\[Hardware Error\]: (?:Machine check|CPU|.{0,40}(?:Uncorrected|fatal))|EDAC[^\n]{0,60}(?:UE|uncorrect)/i,
    explains: consequences,
    problem: 'the host reports a hardware error',
    cause: 'CPU or memory',
    remedy: 'mcelog or rasdaemon; drain the host',
  },
  {
    code: 'nvlink-fabric-not-ready',
    kind: 'fault',
    untilBoot: true,
    needles: ['match with driver version'],
    pattern:
      /[Ff]abric ?[Mm]anager[^\n]{0,60}?version ([\d.]{3,20}) (?:don't|do not|doesn't|does not) match with driver version ([\d.]{3,20}\d)/,
    explains: [...consequences, 'driver-init', 'cuda-init', 'nvls-failed', 'nvls-bind', 'p2p-broken'],
    problem: 'the fabric manager ($1) does not fit the driver ($2), so it does not start',
    cause: 'the driver was updated, and the package of the fabric manager was not, or the other way round',
    remedy:
      'install the fabric manager of exactly the version of the driver, hold both packages back from automatic updates, then systemctl restart nvidia-fabricmanager; `nvidia-smi -q` (Fabric) must say Completed, Success',
  },
  {
    code: 'nvlink-fabric-not-ready',
    kind: 'fault',
    untilBoot: true,
    needles: ['nvidia-fabricmanager', 'fabricmanager', 'fabric manager'],
    pattern:
      /[Ff]ailed to start \S{0,30}nvidia-fabricmanager|nvidia-fabricmanager[^\n]{0,80}(?:\bfail|inactive|\bdead\b|mismatch)|(?:^|[^\w])fabric ?manager[^\n]{0,40}(?:is not running|not running|failed to (?:start|initialize|init))|Failed to start[^\n]{0,40}[Ff]abric ?[Mm]anager/i,
    explains: [...consequences, 'driver-init', 'cuda-init', 'nvls-failed', 'nvls-bind', 'p2p-broken'],
    problem: 'the fabric manager of a host with NVSwitches does not run',
    cause: 'it did not start (another version than the driver, an NVSwitch or NVLink that failed), or it was not enabled',
    remedy:
      '`journalctl -u nvidia-fabricmanager` says why; its version must be that of the driver (`nvidia-smi`); then systemctl enable --now nvidia-fabricmanager',
  },
  {
    code: 'driver-init',
    kind: 'fault',
    untilBoot: true,
    needles: ['rminitadapter failed', 'failed to initialize the nvidia kernel module'],
    pattern: /RmInitAdapter failed|Failed to initialize the NVIDIA kernel module/i,
    explains: consequences,
    problem: 'the driver of a host did not start',
    cause: 'a GPU that does not answer, or a kernel module that does not fit the kernel or the card',
    remedy: '`dmesg -T` (NVRM); power-cycle the host',
  },
  {
    code: 'driver-init',
    kind: 'fault',
    untilBoot: true,
    needles: ['nvrm: bar1 is 0m'],
    explains: [...consequences, 'gpu-none'],
    problem: 'the BIOS gave a GPU no room for its memory (BAR1 is 0M), so the driver does not use it',
    cause: 'addresses above 4 GiB are off in the BIOS (Above 4G Decoding), or a virtual machine has too little of such room',
    remedy:
      'switch Above 4G Decoding on; in a VM give more 64-bit MMIO; pci=realloc on the kernel command line goes around some BIOSes',
  },
  {
    code: 'gpu-reset',
    kind: 'fault',
    needles: ['amdgpu', 'hw exception by gpu node'],
    pattern: /amdgpu[^\n]{0,80}(?:GPU reset begin|ring \S{1,20} timeout)|HW Exception by GPU node-\d{1,3}[^\n]{0,80}GPU Hang/,
    explains: consequences,
    problem: 'a GPU of AMD hung, and the driver resets it',
    cause: 'a kernel of the program that does not end, the firmware, or the GPU itself',
    remedy: '`dmesg -T` (amdgpu) from the first such line; replace the GPU if it is always the same one',
  },
  {
    code: 'network-tables',
    kind: 'fault',
    needles: ['nf_conntrack: table full', 'neighbor table overflow', 'neighbour table overflow', 'consider tuning tcp_mem'],
    pattern: /(nf_conntrack: table full|neighbou?r table overflow|TCP: out of memory)/,
    explains: ['connect-failed', 'connect-retry', 'remote-closed', 'store-timeout', 'store-lost', 'calls-failed'],
    problem: 'the kernel of a host drops packets: $1',
    cause:
      'a table of the host is too small for the connections of a large job: tracked connections, neighbours, or memory of TCP',
    remedy:
      'sysctl net.netfilter.nf_conntrack_max, net.ipv4.neigh.default.gc_thresh3 or net.ipv4.tcp_mem: raise the one that is full; do not track the connections between hosts of the job',
  },
  {
    code: 'storage-failed',
    kind: 'failure',
    needles: [
      'lustreerror: ',
      'lustre: ',
      'not responding, still trying',
      'i/o error, dev',
      'ext4-fs error',
      'mountvolume.setup failed',
    ],
    pattern:
      /(LustreError: [^\n]{0,120}|Lustre: [^\n]{0,80}was lost|nfs: server \S{1,100} not responding|I\/O error, dev \S{1,20}|EXT4-fs error[^\n]{0,80}|MountVolume\.SetUp failed[^\n]{0,100})/,
    explains: ['watchdog-timeout', 'barrier-timeout', 'host-hangs'],
    problem: 'a disk or network file system of a host does not answer: $1',
    cause: 'the storage, its network or its server; ranks that read or write there stand still, and the others wait',
    remedy: '`dmesg -T` of that host, and the state of the storage; a checkpoint or data set on another file system',
  },
];
