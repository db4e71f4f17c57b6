import type { LineRule } from './rule.js';

/** Completions with an error: `Got completion from peer … with status=12 …` since 2.11, `Got completion with error 12 …` before. */
const completion = (status: string): RegExp => new RegExp(String.raw`completion (?:from peer \S{1,100} )?with (?:status=|error )(?:[A-Za-z_ ]{1,40}\()?(?:${status})\b`);

/** InfiniBand and RoCE: queue pairs, completions, ports, GPUDirect. */
export const infinibandRules: readonly LineRule[] = [
  {
    code: 'ib-retry-exceeded', kind: 'failure', needles: ['got completion '], pattern: completion('12'), explains: ['remote-closed', 'ib-flush'],
    problem: 'the other end of an RDMA connection did not answer (status 12, IBV_WC_RETRY_EXC_ERR)',
    cause: 'on RoCE usually the GID index (NCCL_IB_GID_INDEX), a VLAN, or packets lost without PFC/ECN; on InfiniBand a link that went down; on both a peer that died first',
    remedy: 'show_gids on both hosts, then NCCL_IB_GID_INDEX=<the RoCE v2 row>; ib_write_bw -x <index> between the two hosts; NCCL_IB_TIMEOUT=22 helps only against short outages',
    source: 'NVIDIA/nccl#426',
  },
  {
    code: 'ib-receiver-not-ready', kind: 'failure', needles: ['got completion '], pattern: completion('13'), explains: ['remote-closed', 'ib-flush'],
    problem: 'the receiver of an RDMA connection had no buffer posted in time (status 13, IBV_WC_RNR_RETRY_EXC_ERR)',
    cause: 'the remote process hangs or is far behind, or ranks call different collectives', remedy: 'look at the peer named in the line: its stack (py-spy dump) and its log',
  },
  {
    code: 'ib-remote-access', kind: 'failure', needles: ['got completion '], pattern: completion('10'), explains: ['remote-closed', 'ib-flush'],
    problem: 'a NIC was refused access to the other rank\'s memory (status 10, IBV_WC_REM_ACCESS_ERR)',
    cause: 'the peer freed or re-registered its buffer, or ended, while data was on its way; with GPUDirect RDMA also PCIe ACS or an IOMMU in between',
    remedy: 'look for an earlier error of that peer; then try NCCL_NET_GDR_LEVEL=LOC, and switch off ACS and the IOMMU if that helps',
  },
  {
    code: 'ib-local-protection', kind: 'failure', needles: ['got completion '], pattern: completion('4'), explains: ['remote-closed', 'ib-flush'],
    problem: 'a NIC was refused access to memory of its own host (status 4, IBV_WC_LOC_PROT_ERR)',
    cause: 'GPUDirect RDMA through PCIe ACS or an IOMMU, or an old nvidia-peermem; or a buffer that was freed while in use',
    remedy: 'NCCL_NET_GDR_LEVEL=LOC to confirm; then switch ACS and the IOMMU off (iommu=pt), or update the driver',
  },
  {
    code: 'ib-remote-operation', kind: 'failure', needles: ['got completion '], pattern: completion('9|11'), explains: ['remote-closed', 'ib-flush'],
    problem: 'the remote NIC could not carry out an RDMA operation (status 9 or 11)',
    cause: 'the remote NIC or GPU failed, or the receive request did not fit what was sent', remedy: 'look at the log and dmesg of the peer named in the line',
  },
  {
    code: 'ib-flush', kind: 'symptom', needles: ['got completion '], pattern: completion('5'),
    problem: 'queued RDMA operations were thrown away (status 5, IBV_WC_WR_FLUSH_ERR)', cause: 'the queue pair broke before: an earlier completion error on this connection, or a peer that ended',
    remedy: 'look for the first completion error in the logs of both ends',
  },
  {
    code: 'ib-completion-error', kind: 'failure', needles: ['got completion '], pattern: completion('1|2|3|6|7|8|14|15|16|17|18|19|20|21'),
    problem: 'an RDMA operation failed', cause: 'the status names it (ibv_wc_status)', remedy: 'look for the first completion error in the logs of both ends, and at dmesg of both hosts',
  },
  {
    code: 'ib-rails-unreachable', kind: 'fault', needles: ['ibv_modify_qp failed'], pattern: /failed with (?:error )?(?:110|Connection timed out).{0,200}local GID (?!index)(\S{3,60}), remote GID (\S{3,60})/,
    explains: ['remote-closed'],
    problem: 'a NIC cannot reach the other host\'s NIC: from $1 to $2 nothing answers',
    cause: 'the two NICs are on different rails or subnets, which the fabric does not route between; NCCL crossed rails', network: true,
    remedy: 'NCCL_CROSS_NIC=0 keeps every NIC on its own rail; if that must not be, route between the rails (ping -I <local> <remote>), or merge NICs of one rail with NCCL_IB_HCA',
    source: 'NVIDIA/nccl#2013',
  },
  {
    code: 'ib-peer-unreachable', kind: 'failure', needles: ['ibv_modify_qp failed'], pattern: /failed with (?:error )?(?:110|101|113|Connection timed out|Network is unreachable|No route to host)/, explains: ['remote-closed'],
    problem: 'a NIC cannot reach the other host\'s NIC: ibv_modify_qp got no address for it',
    cause: 'no route between the two RoCE ports: another subnet or rail, a wrong GID index, or ARP that is not answered',
    remedy: 'NCCL_CROSS_NIC=0 if the fabric is split into rails; ping -I between the two addresses; show_gids and NCCL_IB_GID_INDEX', network: true,
  },
  {
    code: 'ib-gid-missing', kind: 'fault', needles: ['ibv_modify_qp failed'], pattern: /failed with (?:error )?(?:19|61|22|No such device|No data available|Invalid argument)/, explains: ['remote-closed'],
    problem: 'a queue pair cannot be set up: the port has no usable GID at the index that NCCL took',
    cause: 'NCCL_IB_GID_INDEX points to an empty row, or the container\'s network namespace does not have the interface that the GID belongs to (RoCE without host network)',
    remedy: 'show_gids inside the container; use the host network (--net=host, hostNetwork: true) or give the pod the RoCE interface; set NCCL_IB_GID_INDEX to a row with an address',
    source: 'NVIDIA/nccl#925',
  },
  {
    code: 'ib-queue-pair', kind: 'failure', needles: ['ibv_modify_qp failed'],
    problem: 'a queue pair cannot be connected', cause: 'the wrong GID index, ports on different subnets, or MTU and link type that do not fit', remedy: 'show_gids; compare ibv_devinfo of both hosts; ib_write_bw between them',
  },
  {
    code: 'ib-gid-missing', kind: 'fault', needles: ['ibv_query_gid failed', 'ibv_query_gid_ex failed', 'no valid gid', 'could not find a valid gid'],
    problem: 'a port has no GID at the index that NCCL asked for', cause: 'NCCL_IB_GID_INDEX is beyond the table, or the interface has no address in this network namespace',
    remedy: 'show_gids; set NCCL_IB_GID_INDEX to a row that exists on all hosts, or unset it (2.21 and later find it)',
  },
  {
    code: 'ib-memory-registration', kind: 'fault', needles: ['ibv_reg_mr', 'ibv_reg_dmabuf_mr'], pattern: /ibv_reg\w{1,20} failed.{0,60}Bad address/,
    problem: 'the NIC cannot register GPU memory (Bad address)', cause: 'nvidia-peermem is not loaded or does not fit the driver, so the NIC sees no GPU memory',
    remedy: 'sudo modprobe nvidia-peermem (lsmod | grep peermem), or a driver and kernel with DMA-BUF; NCCL_NET_GDR_LEVEL=LOC goes around it',
  },
  {
    code: 'memlock', kind: 'fault', needles: ['ibv_reg_mr', 'ibv_create_qp', 'ibv_create_cq', 'ibv_alloc_pd'], pattern: /ibv_\w{1,30} failed.{0,60}Cannot allocate memory/,
    problem: 'the NIC cannot lock memory (Cannot allocate memory)', cause: 'the limit on locked memory is too low (RLIMIT_MEMLOCK)',
    remedy: 'ulimit -l must say unlimited in the job itself: /etc/security/limits.conf, docker run --ulimit memlock=-1, LimitMEMLOCK=infinity for slurmd and containerd',
  },
  {
    code: 'ib-memory-registration', kind: 'failure', needles: ['ibv_reg_mr', 'ibv_reg_dmabuf_mr'], pattern: /ibv_reg\w{1,20} failed/,
    problem: 'the NIC cannot register memory', cause: 'a limit on locked memory (ulimit -l), or GPU memory without nvidia-peermem or DMA-BUF', remedy: 'ulimit -l; lsmod | grep peermem; NCCL_NET_GDR_LEVEL=LOC to see whether GPU memory is the reason',
  },
  {
    code: 'ib-resource', kind: 'failure', needles: ['ibv_create_qp failed', 'ibv_create_cq failed', 'ibv_alloc_pd failed', 'ibv_create_comp_channel failed'], except: /Cannot allocate memory/,
    problem: 'the NIC refused a queue pair or another resource', cause: 'a limit on locked memory (ulimit -l), queue pairs used up, or a container without the right to use the device',
    remedy: 'ulimit -l; ls -l /dev/infiniband in the container (docker run --device /dev/infiniband --ulimit memlock=-1); ibv_devinfo -v | grep max_qp',
    source: 'NVIDIA/nccl#1129',
  },
  {
    code: 'ib-device-open', kind: 'failure', needles: ['net/ib : unable to open device', 'net/ib : unable to query device', 'net/ib : unable to query port'],
    problem: 'NCCL cannot open a NIC that the system lists', cause: 'a container without /dev/infiniband or its permissions, or a NIC that is down', remedy: 'ibv_devinfo in the container; docker run --device=/dev/infiniband; Kubernetes: request the RDMA resource',
  },
  {
    code: 'ib-event', kind: 'failure', needles: ['async fatal event', 'got async event', 'got non-fatal async event', 'async event :'], except: /client reregister|GID table change|SM change|LID change|port active|link up|P_Key|pkey/i,
    pattern: /async (?:fatal )?event[^:]{0,80}: ?(.{3,60})/, explains: ['ib-retry-exceeded', 'ib-flush', 'remote-closed', 'watchdog-timeout'],
    problem: 'a NIC reported an event of its own[: $1]', cause: 'a port that went down or a device error: cable, transceiver, switch port, firmware', remedy: 'dmesg -T | grep mlx5; ibstat; mlxlink -d <device> -m for the cable',
  },
  {
    code: 'ib-gid-changed', kind: 'risk', needles: ['gid table change'], explains: ['ib-retry-exceeded', 'ib-flush'],
    problem: 'the GID table of a NIC changed while the job ran', cause: 'an address of its interface came or went: DHCP, IPv6 addresses that expire, a network manager, other containers',
    remedy: 'give the interface a fixed address (no DHCP, no IPv6 privacy addresses); show_gids before and after', source: 'NVIDIA/nccl#394',
  },
  {
    code: 'ib-link-types', kind: 'fault', needles: ['incompatible devices:', 'device is incompatible with the local'],
    problem: 'a connection would join NICs of different kinds (InfiniBand with RoCE)', cause: 'hosts list their NICs in different order or have a storage NIC of the other kind', remedy: 'NCCL_IB_HCA=<only the NICs of one link type>, the same on all hosts',
  },
  {
    code: 'ib-no-ip', kind: 'fault', needles: ['net/ib : no ip interface found'],
    problem: 'NCCL found NICs but no IP interface to exchange their addresses', cause: 'no interface is up that NCCL_SOCKET_IFNAME allows', remedy: 'ip addr; NCCL_SOCKET_IFNAME=<interface with an address>',
  },
  {
    code: 'verbs-missing', kind: 'note', needles: ['failed to open libibverbs.so'], network: true,
    problem: 'libibverbs is not installed, so NCCL cannot use InfiniBand or RoCE', cause: 'the image lacks rdma-core', remedy: 'install libibverbs1 (rdma-core) in the image, if the hosts have such NICs',
  },
  {
    code: 'gdr-off', kind: 'cost', needles: ['gpu direct rdma disabled for hca'], except: /NET\/Socket/, pattern: /GPU Direct RDMA Disabled for HCA \d{1,3} '?([^' ]{1,40})/, network: true, explains: ['bandwidth-low'],
    problem: 'GPUDirect RDMA is off: NIC $1 cannot reach GPU memory',
    cause: 'nvidia-peermem is not loaded, and the kernel or driver has no DMA-BUF', remedy: 'sudo modprobe nvidia-peermem (lsmod | grep peermem); or the open kernel modules with Linux 5.12 and later for DMA-BUF', source: 'NVIDIA/nccl#1537',
  },
  {
    code: 'gdr-far', kind: 'cost', needles: ['gpu direct rdma disabled for gpu'], pattern: /GPU Direct RDMA Disabled for GPU (\S{1,30}) \/ HCA (\S{1,30}?)(?: \(distance (\d{1,2}) >=? (\d{1,2})\))?(?:$|[\s,;])/, network: true, explains: ['bandwidth-low', 'gdr-off'],
    problem: 'GPUDirect RDMA is off for GPU $1 and NIC $2[: their PCIe distance is $3, more than the $4 that NCCL allows]',
    cause: 'GPU and NIC are not under one PCIe switch or host bridge', remedy: 'nvidia-smi topo -m; use a NIC nearer to the GPU, or NCCL_NET_GDR_LEVEL=SYS to force it and measure',
  },
  {
    code: 'gdr-off', kind: 'cost', needles: ['no module present for gpu direct rdma', 'nv_peer_mem module is not loaded', 'nvidia-peermem is not loaded'], network: true, explains: ['bandwidth-low'],
    problem: 'GPUDirect RDMA is off: the kernel module for it is not loaded', cause: 'nvidia-peermem is missing', remedy: 'sudo modprobe nvidia-peermem',
  },
  {
    code: 'collnet-missing', kind: 'note', needles: ['cannot initialize collnet'],
    problem: 'SHARP (CollNet) was asked for and is not there; NCCL goes on without', cause: 'no SHARP daemon, or a plugin without it', remedy: 'unset NCCL_COLLNET_ENABLE, or start sharp_am and check the plugin',
  },
  {
    code: 'merge-failed', kind: 'failure', needles: ['could not force merge nics', 'attempted to merge incompatible'],
    problem: 'NICs cannot be merged as NCCL_NET_FORCE_MERGE asks', cause: 'a name in the list is wrong or the NICs differ', remedy: 'unset NCCL_NET_FORCE_MERGE, or compare its names with ibv_devices',
  },
  {
    code: 'net-mismatch', kind: 'fault', needles: ['detected mixed local net device counts', 'detected mixed local collnet device counts'],
    problem: 'hosts have different numbers of network devices', cause: 'a NIC is down or missing on some host, or NCCL_IB_HCA differs', remedy: 'ibstat on all hosts; NCCL_IGNORE_NET_MISMATCH=1 only if the difference is meant',
  },
];
