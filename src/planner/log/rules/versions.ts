import type { LineRule } from './rule.js';

/** Plugins, providers, versions, topology files, and how NCCL's API is used. */
export const versionRules: readonly LineRule[] = [
  {
    code: 'ofi-no-provider', kind: 'fault', needles: ['net/ofi', 'fi_getinfo'], pattern: /NET\/OFI[^\n]{0,80}(?:[Nn]o eligible providers|Unable to find a protocol|Failed to initialize (?:sendrecv|rdma)? ?protocol|initialization failed|no (?:devices|providers) (?:found|available))|fi_getinfo\(\) (?:call )?failed|provider efa output empty list|fi_getinfo\(\) (?:failed|call failed)|Failed to initialize \w{2,10} protocol/,
    explains: ['no-rdma', 'ofi-error', 'calls-failed', 'plugin-old'],
    problem: 'the libfabric plugin (aws-ofi-nccl) finds no provider that it can use', cause: 'the EFA (or CXI) device or driver is missing in the container, libfabric is too old, or FI_PROVIDER names another',
    remedy: 'fi_info -p efa (or cxi) in the container; Kubernetes: request vpc.amazonaws.com/efa; docker run --device /dev/infiniband/uverbs0; install a newer libfabric', network: true,
  },
  {
    code: 'ofi-slow-provider', kind: 'cost', needles: ['selected provider is', 'using provider'], pattern: /Selected [Pp]rovider is (tcp|sockets|udp|ofi_rxm|net)\b/, explains: ['bandwidth-low', 'gdr-off'], network: true,
    problem: 'the libfabric plugin uses the provider $1, not the fast network', cause: 'EFA (or CXI) was not found, or FI_PROVIDER is set', remedy: 'FI_PROVIDER=efa (cxi on Slingshot); fi_info lists what there is; check the device in the container',
  },
  {
    code: 'ofi-no-rdma-write', kind: 'note', needles: ['setting nccl_proto to "simple"', 'setting nccl_proto=simple', 'setting nccl_proto to \'simple\''],
    problem: 'the libfabric plugin limits NCCL to the protocol Simple', cause: 'the provider cannot deliver LL and LL128 in order', remedy: 'nothing, on older EFA; a newer plugin and driver allow the others',
  },
  {
    code: 'ofi-memory', kind: 'fault', needles: ['net/ofi', 'cxip_', 'cxil_'], pattern: /(?:NET\/OFI|cxip?)[^\n]{0,120}(?:[Uu]nable to register memory|could not register memory|Couldn't register|fi_mr_reg[^\n]{0,30}fail)[^\n]{0,120}/i, explains: ['ofi-error', 'calls-failed'],
    problem: 'the libfabric plugin cannot register memory', cause: 'GPU memory without DMA-BUF or GDRCopy support in the provider, a limit on locked memory, or memory registrations used up', remedy: 'ulimit -l unlimited; on Slingshot FI_CXI_DISABLE_HOST_REGISTER=1 and FI_MR_CACHE_MONITOR=userfaultfd; update driver and libfabric',
  },
  {
    code: 'ofi-unreachable', kind: 'failure', needles: ['net/ofi'], pattern: /NET\/OFI[^\n]{0,160}(?:[Uu]nreachable|[Uu]nresponsive receiver|No route|Unable to insert remote address|security group)/, explains: ['remote-closed', 'ofi-error', 'calls-failed', 'watchdog-timeout'],
    problem: 'the libfabric plugin cannot reach a remote rank', cause: 'on EFA the security group does not allow all traffic within itself, hosts are in different subnets or placement groups, or the peer died', remedy: 'the security group must allow all traffic from and to itself, both ways; fi_pingpong -p efa between the hosts',
  },
  {
    code: 'ofi-queue', kind: 'fault', needles: ['cxi', 'cq overrun', 'eq overrun', 'flow control', 'le resources'], pattern: /cxi[^\n]{0,120}(?:overrun|overflow|LE resources|flow control|ENOSPC)/i, explains: ['ofi-error'],
    problem: 'a queue of the Slingshot NIC (CXI) overflowed', cause: 'too small queues or hardware matching used up by many messages', remedy: 'FI_CXI_DEFAULT_CQ_SIZE=131072, FI_CXI_RDZV_PROTO=alt_read, FI_CXI_RX_MATCH_MODE=hybrid',
  },
  {
    code: 'ofi-error', kind: 'risk', needles: ['net/ofi'], pattern: /NCCL WARN NET\/OFI (.{3,140})/, except: /Disabling shared memory failed|Only EFA provider is supported|Setting (?:FI_|NCCL_)|Running on|CUDA flush enabled/, explains: ['calls-failed'],
    problem: 'the libfabric plugin failed: $1', cause: 'the provider or its device is not in order', remedy: 'fi_info; FI_LOG_LEVEL=warn; on EFA the security group must allow all traffic within itself',
  },
  {
    code: 'ofi-note', kind: 'note', needles: ['only efa provider is supported', 'disabling shared memory failed'],
    problem: 'the libfabric plugin warns of something that does no harm', cause: 'the host has no EFA and NCCL takes another network, or libfabric lacks an option', remedy: 'nothing, if this host has no EFA',
    source: 'aws/deep-learning-containers#2675',
  },
  {
    code: 'ofi-not-loaded', kind: 'risk', needles: ['libnccl-net-ofi', 'libnccl-net-aws', 'libfabric.so'], pattern: /(?:libnccl-net\S{0,20}|libfabric\.so\S{0,6})[^\n]{0,80}(?:cannot open|No such file|undefined symbol|Could not find)/, network: true,
    problem: 'a network plugin for libfabric cannot be loaded', cause: 'the plugin or libfabric is not in the image or not in LD_LIBRARY_PATH', remedy: 'ldd libnccl-net.so; LD_LIBRARY_PATH=/opt/amazon/efa/lib:/opt/amazon/ofi-nccl/lib',
  },
  {
    code: 'symbol-missing', kind: 'fault', needles: ['undefined symbol', 'symbol lookup error', 'version `', 'cannot open shared object file'], pattern: /(?:undefined symbol: (nccl\w{2,40}|cu\w{2,40}|_ZN\w{2,60})|(libnccl\S{0,20}|libcuda\S{0,20}|libtorch\S{0,20}): cannot open shared object)/, except: /dlvsym|NCCL INFO|mlx5dv/,
    problem: 'libraries do not fit together: $1$2 is missing', cause: 'another libnccl.so (or CUDA) is found at run time than the program was built with: LD_LIBRARY_PATH, LD_PRELOAD or two pip packages', remedy: 'ldd and LD_DEBUG=libs show which one is loaded; unset LD_LIBRARY_PATH; pip list | grep nccl',
  },
  {
    code: 'version-mixed', kind: 'fault', needles: ['mismatched nccl version', 'nccl version mismatch with remote peer'], pattern: /(?:rank (\d{1,7}) version (\d{4,6}) rank (\d{1,7}) version (\d{4,6})|NCCL version mismatch)/, explains: ['init-unfinished', 'calls-failed'],
    problem: 'ranks have different versions of NCCL[ (rank $1: $2, rank $3: $4)]', cause: 'images, wheels or LD_LIBRARY_PATH differ between hosts', remedy: 'python -c "import torch; print(torch.cuda.nccl.version())" on every host; use one image',
  },
  {
    code: 'library-old', kind: 'fault', needles: ['nccl library is too old', 'not backwards compatible', 'compiled with too old version'],
    problem: 'the program was compiled with another NCCL than the one it runs with', cause: 'LD_LIBRARY_PATH finds another libnccl.so', remedy: 'ldd <program> | grep nccl; put the right one first in LD_LIBRARY_PATH',
  },
  {
    code: 'topology-file', kind: 'fault', needles: ['attribute ', 'could not open xml', 'xml parse', 'xml', 'topo'], pattern: /NCCL WARN (?:Attribute (?!coll )\S{1,30} of node \S{1,20} not found|Could not open XML|XML[^\n]{0,80}|[^\n]{0,40}(?:topology|graph) file[^\n]{0,80}|Dev not found)/i, explains: ['calls-failed', 'init-unfinished'],
    problem: 'a topology or graph file does not fit this machine', cause: 'NCCL_TOPO_FILE, NCCL_GRAPH_FILE or /etc/nccl.conf name a file of another machine or of a part of this one', remedy: 'unset NCCL_TOPO_FILE and NCCL_GRAPH_FILE, and look into /etc/nccl.conf; tccl topo doctor <file>',
  },
  {
    code: 'topology-file', kind: 'fault', needles: ['warn dev '], pattern: /NCCL WARN Dev (?:\S{1,12} )?not found/, explains: ['calls-failed', 'init-unfinished'],
    problem: 'a graph file names a GPU that this job does not have', cause: 'NCCL_GRAPH_FILE (perhaps in /etc/nccl.conf) was made for another number of GPUs', remedy: 'unset NCCL_GRAPH_FILE, also in /etc/nccl.conf',
  },
  {
    code: 'topology-warning', kind: 'note', needles: ['attribute coll of node net not found'],
    problem: 'NCCL misses the attribute coll of a network device and goes on', cause: 'a harmless message of NCCL 2.12 to 2.16', remedy: 'nothing',
  },
  {
    code: 'topology-search', kind: 'risk', needles: ['could not find a path for pattern'],
    problem: 'the search finds no way through the topology; NCCL takes the ranks in plain order', cause: 'P2P is off, or the topology of the VM or container is wrong', remedy: 'unset NCCL_P2P_LEVEL and NCCL_P2P_DISABLE; tccl topo doctor on the dumped topology (NCCL_TOPO_DUMP_FILE)',
  },
  {
    code: 'topology-search', kind: 'fault', needles: ['could not find net with id', 'could not find any local path from gpu', 'could not find reverse path', 'failed to find reverse path', 'no path computed to go', 'could not find real path'],
    pattern: /WARN/, explains: ['calls-failed', 'init-unfinished'],
    problem: 'NCCL cannot read this machine\'s topology', cause: 'a container or sandbox that hides /sys, a topology file that does not fit, or a NIC that vanished', remedy: 'ls /sys/class/pci_bus in the container; unset NCCL_TOPO_FILE; give NCCL a topology file (NCCL_TOPO_FILE) if /sys must stay hidden',
  },
  {
    code: 'no-transport', kind: 'fault', needles: ['no transport found', 'has no transport for'], explains: ['calls-failed', 'init-unfinished'],
    problem: 'two ranks have no way to each other', cause: 'P2P, shared memory and network are all switched off or fail', remedy: 'unset NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET; look at what the network said before',
  },
  {
    code: 'no-algorithm', kind: 'fault', needles: ['no algorithm/protocol available'], pattern: /for function (\w{3,20})/, explains: ['calls-failed'],
    problem: 'no algorithm is left[ for $1]', cause: 'NCCL_ALGO or NCCL_PROTO forbids all that this collective can use', remedy: 'unset NCCL_ALGO and NCCL_PROTO, or exclude with ^ in place of a list',
  },
  {
    code: 'nccl-usage', kind: 'failure', needles: ['argument is null', 'invalid root', 'invalid type', 'invalid reduction operation', 'is not a valid pointer', 'mismatchs with nccl device', 'to self without a matching', 'corrupted comm object', 'attempt to use communicator', 'has already been destroyed', 'improper usage of', 'invalid config ', 'blocking and nonblocking communicators', 'invalid rank requested', 'is in abort state'],
    pattern: /NCCL WARN (.{3,160})/,
    problem: 'the program used NCCL wrongly: $1', cause: 'an argument, rank or communicator is not valid at that call', remedy: 'look at the call in the program\'s stack; keep the communicator until all of its operations are done',
  },
  {
    code: 'net-plugin-other', kind: 'note', needles: ['reducing to tcp', 'falling back to internal'],
    problem: 'NCCL falls back to its internal network', cause: 'a plugin did not load', remedy: 'see the lines NET/Plugin before',
  },
  {
    code: 'gdrcopy', kind: 'note', needles: ['gdrcopy failure', 'failed to open libgdrapi'],
    problem: 'GDRCopy does not work; NCCL goes on without', cause: 'the gdrdrv module or library is missing', remedy: 'install gdrcopy, or set NCCL_GDRCOPY_ENABLE=0',
  },
  {
    code: 'rccl', kind: 'note', needles: ['rccl version', 'librccl', '/rccl/'],
    problem: 'this is the log of RCCL (AMD): tccl reads what it warns of, but does not plan RCCL', cause: 'RCCL has its own topology models, tuning and graphs', remedy: 'compare nothing here with tccl plan',
  },
];
