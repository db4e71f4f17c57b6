import { counted } from '../../../counted.js';
import type { LogFinding, LogSeverity } from '../finding.js';
import type { LoggedWarning } from '../model.js';

interface Known {
  readonly form: RegExp;
  readonly severity: LogSeverity;
  readonly cause: string;
  readonly remedy: string;
}

/** Warnings that people ask about, with what is known of them. */
const known: readonly Known[] = [
  {
    form: /Got completion .*(?:status=12|error 12)\b/, severity: 'error',
    cause: 'the other end did not answer (IBV_WC_RETRY_EXC_ERR): a link went down, the peer died, or on RoCE packets are lost or take another VLAN or GID',
    remedy: 'find the rank that failed first; test the path with ib_write_bw between these two hosts; on RoCE check PFC/ECN, NCCL_IB_GID_INDEX and NCCL_IB_TC; NCCL_IB_TIMEOUT=22 helps against short outages',
  },
  {
    form: /Got completion .*(?:status=5|error 5)\b/, severity: 'error', cause: 'the queue pair was flushed after an earlier error (IBV_WC_WR_FLUSH_ERR)',
    remedy: 'look for the first completion error in the log, on any rank',
  },
  {
    form: /Got completion .*(?:status=(?:4|10|11)|error (?:4|10|11))\b/, severity: 'error', cause: 'the NIC may not access memory (protection or remote access error): GPUDirect RDMA with a module or an IOMMU that does not allow it',
    remedy: 'try NCCL_NET_GDR_LEVEL=LOC; if that works, update nvidia-peermem and the driver, or switch ACS and the IOMMU off',
  },
  {
    form: /ibv_modify_qp failed/, severity: 'error', cause: 'the queue pair cannot reach the other end: no route between these ports, another subnet, or the wrong GID',
    remedy: 'check NCCL_IB_GID_INDEX (show_gids), that both ports are on one subnet or routed, and NCCL_IB_HCA',
  },
  { form: /ibv_(?:reg_mr|create_qp|create_cq)\S* failed/, severity: 'error', cause: 'the NIC could not get memory or a resource: most often a limit on locked memory', remedy: 'ulimit -l unlimited (docker --ulimit memlock=-1), and for GPU memory nvidia-peermem' },
  {
    form: /[Cc]onnection (?:closed by remote peer|reset by peer)|socketProgress: Connection closed/, severity: 'error', cause: 'another rank died or left: this one only noticed',
    remedy: 'find the rank whose log ends first, or that has another error before this one',
  },
  { form: /Connect to .* failed|connection refused|No route to host|Connection timed out|socketPollConnect|timed out/i, severity: 'error', cause: 'ranks cannot reach each other by TCP: the wrong interface was chosen, or a firewall is between them', remedy: 'set NCCL_SOCKET_IFNAME to the interface that the hosts share (not docker0 or virbr0)' },
  { form: /No socket interface found|no (?:usable|socket) .*interface/i, severity: 'error', cause: 'no interface fits NCCL_SOCKET_IFNAME, or none is up', remedy: 'set NCCL_SOCKET_IFNAME to one that ip addr shows' },
  { form: /Mismatched NCCL version/, severity: 'error', cause: 'ranks run different NCCL', remedy: 'use one image on all hosts' },
  { form: /Duplicate GPU detected|Multiple Ranks are using the same GPU/, severity: 'error', cause: 'two ranks chose the same GPU', remedy: 'call cudaSetDevice(local rank), or set CUDA_VISIBLE_DEVICES per rank' },
  { form: /[Cc]uda failure.*out of memory|Cuda failure 2\b/, severity: 'error', cause: 'the GPU had no memory left for NCCL\'s buffers', remedy: 'leave NCCL some memory (the allocator\'s limit), lower NCCL_BUFFSIZE or the number of channels' },
  { form: /[Cc]uda failure/, severity: 'error', cause: 'a CUDA call failed, often because of an earlier error of a kernel', remedy: 'look for the first CUDA error of that rank; run it with CUDA_LAUNCH_BLOCKING=1' },
  { form: /shared memory|\/dev\/shm|posix_fallocate|shm_open|Error while (?:creating|attaching to) shared/i, severity: 'error', cause: '/dev/shm is too small or not shared: containers get 64 MiB by default', remedy: 'docker --shm-size=1g or --ipc=host; in Kubernetes an emptyDir with medium: Memory on /dev/shm' },
  { form: /Could not find a path for pattern/, severity: 'warning', cause: 'the search found no way through the topology, so NCCL takes ranks in plain order: P2P is off, or the topology file is wrong', remedy: 'unset NCCL_P2P_LEVEL and NCCL_P2P_DISABLE; run tccl topo doctor on the topology file' },
  { form: /[Nn]o transport found/, severity: 'error', cause: 'two ranks have no way to each other: P2P, shared memory and network are all off or fail', remedy: 'look at NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, NCCL_NET and at what the network said' },
  { form: /Message truncated/, severity: 'error', cause: 'ranks called different operations or sizes, or something else connected to NCCL\'s port', remedy: 'compare the calls of these ranks; keep port scanners off the interface' },
  { form: /Attempt to use communicator|comm 0x\S+ has already been destroyed/, severity: 'error', cause: 'the program used a communicator before it was ready or after its end', remedy: 'wait for ncclCommGetAsyncError to say ncclSuccess; keep the communicator until all is done' },
  { form: /Missing "iommu=pt"|ACS|NUMA auto balancing/i, severity: 'warning', cause: 'a setting of the machine that costs bandwidth or hangs P2P', remedy: 'set it as the warning says (iommu=pt, ACS off, sysctl kernel.numa_balancing=0)' },
  { form: /Dev not found|Attribute .* not found|[Tt]opo|XML/, severity: 'error', cause: 'a topology or graph file does not fit this machine', remedy: 'look for NCCL_TOPO_FILE, NCCL_GRAPH_FILE and /etc/nccl.conf; run tccl topo doctor on the file' },
  { form: /NET\/OFI .*fail|Unable to (?:write to EQ|complete)|Request completed with error/, severity: 'error', cause: 'the libfabric plugin failed', remedy: 'check the security group (all traffic within it must be allowed), FI_PROVIDER and the EFA driver' },
  { form: /Cannot initialize CollNet/, severity: 'warning', cause: 'SHARP was asked for and is not there', remedy: 'check the SHARP daemon and plugin, or unset NCCL_COLLNET_ENABLE' },
];

/** What NCCL warned of, those alike once. */
export function checkWarnings(warnings: readonly LoggedWarning[]): LogFinding[] {
  const texts = warnings.filter(({ source }) => source !== 'returned');
  const returned = warnings.filter(({ source }) => source === 'returned');
  const findings = texts.map(({ text, source, count, places, ranks }): LogFinding => {
    const entry = known.find(({ form }) => form.test(text));
    return {
      code: entry?.severity === 'error' ? 'nccl-error' : 'nccl-warning', severity: entry?.severity ?? 'warning',
      problem: `NCCL warned ${counted(count, 'time')}: '${text.length > 300 ? `${text.slice(0, 300)}…` : text}'${source === undefined ? '' : ` (${source})`} on ${ranks.slice(0, 4).join(', ')}${ranks.length > 4 ? ', …' : ''}`,
      cause: entry?.cause ?? 'NCCL says so; tccl knows no more of this warning', remedy: entry?.remedy ?? 'read it in the context of the lines around it', places: places.slice(0, 4),
    };
  });
  // A call that failed without a word why, in a log that has no warning at all.
  const [first] = returned;
  if (first !== undefined && findings.length === 0) {
    findings.push({
      code: 'nccl-error', severity: 'error',
      problem: `calls failed without a warning: ${first.text} on ${first.ranks.slice(0, 4).join(', ')}${returned.length > 1 ? `; ${returned.length - 1} more kinds` : ''}`,
      cause: 'the warning that tells why was written elsewhere, to stderr or another file', remedy: 'give that output too; set NCCL_DEBUG=WARN or INFO for all ranks', places: first.places.slice(0, 4),
    });
  }
  return findings;
}
