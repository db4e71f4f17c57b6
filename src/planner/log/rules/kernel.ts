import { aftermath, type LogFindingCode } from '../codes.js';
import type { LineRule } from './rule.js';

const consequences: readonly LogFindingCode[] = [
  ...aftermath,
  'cuda-illegal-access',
  'gpu-lost',
  'exit-crash',
  'xid-cleanup',
  'bandwidth-low',
];

/** `NVRM: Xid (PCI:0000:c1:00): 79, pid=…, GPU has fallen off the bus.` */
function xid(
  code: LogFindingCode,
  numbers: string,
  kind: LineRule['kind'],
  problem: string,
  cause: string,
  remedy: string,
): LineRule {
  return {
    code,
    kind,
    needles: ['xid (pci', 'xid('],
    pattern: new RegExp(String.raw`\bXid ?\(PCI:([0-9a-fA-F:.]{3,16})\): (?:\d{1,3}, [^\n]{0,120}previous Xid )?(${numbers})\b`),
    problem,
    cause,
    remedy,
    explains: consequences,
    source: 'NVIDIA Xid catalogue',
  };
}

/** The kernel's log: Xid lines of the driver, NICs, PCIe, IOMMU. */
export const kernelRules: readonly LineRule[] = [
  xid(
    'xid-bus',
    '79',
    'fault',
    'GPU $1 has fallen off the bus (Xid 79)',
    'power, temperature, the PCIe link or the GPU itself',
    'drain the host; power-cycle it; replace the GPU if it comes back',
  ),
  xid(
    'xid-nvlink',
    '74|137|14[4-9]|150',
    'fault',
    'GPU $1 has NVLink errors (Xid $2)',
    'a bad NVLink, bridge, connector, or the GPU or NVSwitch at its other end',
    '`nvidia-smi nvlink -e`; drain the host; reseat or replace what has errors',
  ),
  xid(
    'xid-memory',
    '48|63|64|94|95|140|160',
    'fault',
    'GPU $1 has memory errors (Xid $2)',
    'uncorrectable ECC errors or rows that were remapped',
    '`nvidia-smi -q`; reset the GPU; replace it if remapping failed',
  ),
  xid(
    'xid-gsp',
    '119|120',
    'fault',
    'the GSP firmware of GPU $1 does not answer (Xid $2)',
    'a bug of driver or firmware, or a failing GPU',
    'reset the GPU or reboot; update the driver; NVreg_EnableGpuFirmware=0 goes around it where supported',
  ),
  xid(
    'xid-c2c',
    '121',
    'fault',
    'GPU $1 has errors on its link to the CPU, C2C (Xid 121)',
    'the C2C link was retrained or is bad',
    'reset the host; replace it if they come back',
  ),
  xid(
    'xid-hang',
    '62|109|110|122|123|143',
    'fault',
    'a unit of GPU $1 failed (Xid $2)',
    'driver, firmware or the GPU itself',
    'reset the GPU or reboot; replace it if it comes back',
  ),
  xid(
    'xid-kernel',
    '13|31|32|68|69',
    'failure',
    'a kernel on GPU $1 made an invalid access (Xid $2)',
    'a bug in a kernel of the program, which NCCL only notices; seldom a faulty GPU',
    'run that process with compute-sanitizer; if other programs fail on this GPU alone, test it (`dcgmi diag -r 3`)',
  ),
  xid(
    'xid-other',
    '8|38|56|57|58|61|66|78|92|96|137|154|155|156',
    'failure',
    'the driver reports Xid $2 of GPU $1',
    "see NVIDIA's catalogue of Xid errors",
    '`dcgmi diag -r 3`; look up the number',
  ),
  xid(
    'xid-cleanup',
    '43|45',
    'symptom',
    'the driver ended a program on GPU $1 (Xid $2)',
    'it follows another error or the end of the process',
    'look for an Xid before it, and for what ended the process',
  ),
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
    needles: ['link down', 'link is down', 'cable unplugged', 'lost carrier', 'port module event', 'nic link is down'],
    pattern:
      /(mlx[45]\w{0,20}|bnxt\w{0,10}|ib\d\w{0,10}|ens?\w{1,12}|eth\d{1,3}|bond\d{1,3}|rdma\d|irdma|efa)[^\n]{0,80}(?:[Ll]ink (?:is )?[Dd]own|unplugged|[Ll]ost carrier|High Temperature|Bus stuck|Bad or unsupported)/,
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
    code: 'driver-init',
    kind: 'fault',
    needles: ['rminitadapter failed', 'failed to initialize the nvidia kernel module', 'nvidia-fabricmanager'],
    pattern:
      /RmInitAdapter failed|Failed to initialize the NVIDIA kernel module|nvidia-fabricmanager[^\n]{0,60}(?:fail|inactive|dead|mismatch)/i,
    explains: consequences,
    problem: 'the driver or the fabric manager of a host did not start',
    cause: 'a GPU that does not answer, or versions of driver and fabric manager that differ',
    remedy: '`journalctl -u nvidia-fabricmanager`; `dmesg -T` (NVRM); power-cycle the host',
  },
];
