import type { LineRule } from './rule.js';

/** NCCL's messages about a TCP connection that cannot be made, from 2.4 to 2.30. */
const CONNECT = String.raw`[Cc]onnect(?: to |ing to address )(\S{2,80}?)(?:<\d{1,5}>)? (?:failed|returned)[^\n]{0,80}`;
const REFUSAL = String.raw`(?:timed out|refused|No route to host|unreachable|Invalid argument|error retry count|after \d{1,4} attempts|caused connection abort|reset by peer|failed|Cannot assign)`;

/** Bootstrap and NET/Socket: interfaces, addresses, connections. */
export const socketRules: readonly LineRule[] = [
  {
    code: 'interface-wrong',
    kind: 'fault',
    needles: ['connect to ', 'connecting to address'],
    pattern: new RegExp(
      `(?:WARN|retry|ailed)[^\\n]{0,80}[Cc]onnect(?: to |ing to address )(fe80:\\S{2,60}?|169\\.254\\.\\S{2,20}?)(?:<\\d{1,5}>)? [^\\n]{0,40}${REFUSAL}|[Cc]onnect to (fe80:\\S{2,60}?|169\\.254\\.\\S{2,20}?)(?:<\\d{1,5}>)? [^\\n]{0,40}${REFUSAL}`,
    ),
    explains: ['connect-failed', 'connect-retry', 'remote-closed', 'init-unfinished', 'calls-failed', 'no-rdma'],
    problem: 'a rank tries to reach another at a link-local address ($1$2), which ends at the own host or cable',
    cause: 'NCCL chose the wrong interface: a veth, docker or unconfigured one',
    remedy: 'NCCL_SOCKET_IFNAME=<the interface that all hosts share, such as eth0 or bond0>; =^docker,veth,lo excludes',
    source: 'Oneflow-Inc/oneflow#3586',
  },
  {
    code: 'interface-wrong',
    kind: 'fault',
    needles: ['connect to ', 'connecting to address'],
    pattern: new RegExp(
      `[Cc]onnect(?: to |ing to address )(127\\.\\S{3,14}?|172\\.17\\.\\S{3,9}?|192\\.168\\.122\\.\\S{1,4}?|::1)(?:<\\d{1,5}>)? [^\\n]{0,40}${REFUSAL}`,
    ),
    explains: ['connect-failed', 'connect-retry', 'remote-closed', 'init-unfinished', 'calls-failed', 'no-rdma'],
    problem: 'a rank tries to reach another at $1, an address that only its own host has',
    cause:
      'NCCL chose the loopback, docker0 or virbr0 interface on the other host, or its host name stands for 127.0.1.1 in /etc/hosts',
    remedy: 'NCCL_SOCKET_IFNAME=<the interface that all hosts share>; `getent hosts $(hostname)` must not give 127.0.x.x',
  },
  {
    code: 'connect-failed',
    kind: 'failure',
    needles: ['connect to ', 'connecting to address', 'call to connect '],
    pattern: new RegExp(`WARN[^\\n]{0,60}(?:${CONNECT}|Call to connect [^\\n]{0,40})${REFUSAL}`),
    explains: ['remote-closed', 'init-unfinished', 'calls-failed', 'connect-retry'],
    problem: 'a rank cannot reach another by TCP[, at $1]',
    cause:
      'a firewall between the hosts, an interface that the other host cannot route to, or a peer that died before it listened',
    remedy:
      '`nc -vz <address> <port>` from that host; open all ports between the hosts (security group, firewalld, ufw); NCCL_SOCKET_IFNAME=<the interface that all hosts share>',
  },
  {
    code: 'connect-failed',
    kind: 'failure',
    needles: ['socketstartconnect: exceeded', 'socketpollconnect: exceeded'],
    explains: ['remote-closed', 'init-unfinished', 'calls-failed', 'connect-retry'],
    problem: 'a rank cannot reach another by TCP, and tried many times',
    cause:
      'a firewall between the hosts, an interface that the other host cannot route to, or a peer that died before it listened',
    remedy:
      '`nc -vz <address> <port>` from that host; open all ports between the hosts (security group, firewalld, ufw); NCCL_SOCKET_IFNAME=<the interface that all hosts share>',
  },
  {
    code: 'network-missing',
    kind: 'fault',
    needles: ['error: network '],
    pattern: /Error: network (\S{1,40}) not found/,
    explains: ['calls-failed', 'nccl-invalid', 'init-unfinished'],
    problem: 'NCCL_NET asks for the network $1, which is not there',
    cause:
      'the plugin is not in LD_LIBRARY_PATH, its name is another one (NET/… in the log), or there is no device for it in this container',
    remedy: 'unset NCCL_NET and look at the lines NET/… of that run: they name the networks that there are',
  },
  {
    code: 'connect-retry',
    kind: 'risk',
    needles: [
      'returned connection timed out, retrying',
      'returned no route to host, retrying',
      'returned connection refused, retrying',
      'retrying (',
      'connection refused, retry',
    ],
    pattern: /connect[^\n]{0,100}(?:timed out|No route to host|refused|unreachable)[^\n]{0,30}retry/i,
    problem: 'a rank tries again and again to reach another by TCP',
    cause: 'a firewall, the wrong interface, or a peer that is not there yet',
    remedy: '`nc -vz <address> <port>` from that host; NCCL_SOCKET_IFNAME=<the interface that all hosts share>',
  },
  {
    code: 'interface-missing',
    kind: 'fault',
    needles: [
      'no socket interface found',
      'no usable listening interface',
      'net/socket : no interface found',
      'unable to find interface',
      'no interface found in the same subnet',
    ],
    explains: ['calls-failed', 'init-unfinished', 'remote-closed'],
    problem: 'NCCL finds no network interface that it may use',
    cause: 'NCCL_SOCKET_IFNAME names none that exists and is up on this host',
    remedy: '`ip -br addr` on that host; set NCCL_SOCKET_IFNAME to a prefix that fits all hosts, or unset it',
  },
  {
    code: 'interface-loopback',
    kind: 'risk',
    needles: ['using [0]lo:127', 'using lo:127', 'using [0]lo:::1', 'using interface lo:'],
    pattern: /(?:Bootstrap ?: Using (?:\[0\])?|NET : Using interface )lo:/,
    explains: ['connect-failed', 'no-rdma'],
    problem: 'NCCL meets over the loopback interface lo (127.0.0.1): ranks of other hosts cannot be reached',
    cause: 'no other interface is up in this container, or NCCL_SOCKET_IFNAME=lo',
    remedy:
      'NCCL_SOCKET_IFNAME=<the interface that all hosts share, such as eth0>; in a container, use the host network or a pod network',
    source: 'Lightning-AI/lightning#2771',
  },
  {
    code: 'interface-virtual',
    kind: 'risk',
    needles: ['bootstrap : using', 'bootstrap: using'],
    pattern:
      /Bootstrap ?: Using (?:\[0\])?((?:docker|virbr|veth|br-|cni|flannel|cali|tun|tailscale|wg|kube|weave|lxc)[^:]{0,20}):/,
    network: true,
    problem: 'NCCL meets over $1, a virtual interface that other hosts may not reach',
    cause: 'it comes first among the interfaces, or NCCL_SOCKET_IFNAME names it',
    remedy: 'NCCL_SOCKET_IFNAME=<the interface that all hosts share>',
  },
  {
    code: 'interface-virtual',
    kind: 'risk',
    needles: ['net/socket : using [', 'net/socket: using ['],
    pattern:
      /NET\/Socket ?: Using \[0\][^\n]{0,200}?\[\d{1,2}\]((?:docker|virbr|veth|br-|cni|flannel|cali|tun|tailscale|wg|kube|weave|lxc)[^:]{0,20}):/,
    explains: ['connect-failed', 'connect-retry'],
    network: true,
    problem: 'NCCL also sends over $1, a virtual interface that other hosts may not reach',
    cause: 'it is up and has an address, also a link-local one, and NCCL_SOCKET_IFNAME does not exclude it',
    remedy: 'NCCL_SOCKET_IFNAME=<the interface that all hosts share>, or =^docker,veth,br-,virbr,lo',
  },
  {
    code: 'remote-closed',
    kind: 'symptom',
    needles: ['gloo/transport/tcp/pair.cc', 'gloo/transport/tcp/'],
    pattern:
      /gloo\/transport\/tcp\/\S{1,40}\] (?:Connection (?:closed|reset) by peer|Read error|writev)[^\n]{0,20}?(?: \[([\w.:]{3,60})\](?::\d{1,5})?)?/,
    problem: 'the connection of Gloo to another rank[ at $1] was closed: the other side is gone',
    cause: 'that rank died or left first: this one only noticed',
    remedy: 'look for the log of that rank: what it says last is the cause',
  },
  {
    code: 'remote-closed',
    kind: 'symptom',
    needles: [
      'connection closed',
      'connection reset by peer',
      'connection closed by remote peer',
      'broken pipe',
      'socket was closed',
    ],
    pattern:
      /(?:NCCL WARN|NET\/|socketProgress|ncclRemoteError|misc\/socket)[^\n]{0,120}(?:[Cc]onnection (?:closed|reset)|Broken pipe|closed by (?:remote )?peer)(?: by remote peer)?(?: (\S{3,100}?)<\d{1,5}>)?/,
    problem: 'the connection to another rank[ on $1] was closed: the other side is gone',
    cause: 'that rank died or left first: this one only noticed',
    remedy: 'look for the log of that rank: it ends first, or has another error before this',
  },
  {
    code: 'calls-differ',
    kind: 'fault',
    needles: ['message truncated', 'collective mismatch error', 'mismatched collective detected'],
    pattern:
      /[Mm]essage truncated ?: receiv(?:ed|ing) (\d{1,12}) bytes instead of (\d{1,12})|collective mismatch error, local size (\d{1,12}) remote size (\d{1,12})|Mismatched collective detected/,
    explains: ['remote-closed', 'calls-failed'],
    problem:
      'ranks do not agree about a call or the size of a message[: $1 bytes where $2 were awaited][: $3 bytes here, $4 there]',
    cause:
      "ranks called different collectives or sizes, have different NCCL settings (NCCL_PROTO, NCCL_ALGO), or a port scanner connected to NCCL's port",
    remedy:
      'compare the calls and NCCL_* settings of these ranks (TORCH_DISTRIBUTED_DEBUG=DETAIL); keep scanners off the interface',
  },
  {
    code: 'stranger',
    kind: 'risk',
    needles: ['wrong magic', 'wrong type', 'unexpected magic', 'socketfinalizeaccept'],
    pattern: /NCCL (?:WARN|INFO) [^\n]{0,80}(?:wrong (?:magic|type)|unexpected magic)[^\n]{0,80}/,
    explains: ['calls-differ'],
    problem: 'something else than a rank of this job connected to a port of NCCL',
    cause: 'a port scanner, a health check, a rank of another job (an id that is used twice), or another version of NCCL',
    remedy: 'keep scanners off the interface; one id and port a job; `pip list` (nccl) on every host',
  },
  {
    code: 'rank-twice',
    kind: 'fault',
    needles: ['has already checked in'],
    pattern: /rank (\d{1,7}) of (\d{1,7}) ranks has already checked in/,
    explains: ['init-unfinished', 'calls-failed'],
    problem: 'rank $1 of $2 came twice',
    cause: 'two processes have the same rank, or an old process of the job is still there',
    remedy: 'check RANK and WORLD_SIZE of all processes; end processes of the last run',
  },
  {
    code: 'rank-count-differs',
    kind: 'fault',
    needles: ['mismatch in rank count', 'mismatch in info from procs'],
    pattern: /mismatch in (?:rank count|info)[^\n]{0,60}?(\d{1,7}) ?(?:vs|:|,) ?(\d{1,7})/,
    explains: ['init-unfinished', 'calls-failed'],
    problem: 'ranks do not agree how many they are: $1 and $2',
    cause: 'WORLD_SIZE differs between processes, or two jobs share an id and port',
    remedy: 'check WORLD_SIZE, MASTER_ADDR and MASTER_PORT of all processes',
  },
  {
    code: 'interface-missing',
    kind: 'fault',
    needles: ['connecting to address  with family', 'connecting to address with family'],
    explains: ['nccl-invalid', 'nccl-unhandled-system', 'calls-failed', 'init-unfinished'],
    problem: 'a rank has no address: NCCL found no interface on its host, and went on without one',
    cause: 'NCCL_SOCKET_IFNAME names none that exists and is up on this host, which releases up to 2.27 do not say',
    remedy: '`ip -br addr` on every host; set NCCL_SOCKET_IFNAME to prefixes that fit all hosts (eno1,eth0), or unset it',
    source: 'NVIDIA/nccl#1837',
  },
  {
    code: 'address-family',
    kind: 'fault',
    pattern: /NCCL (?:WARN|INFO)|ncclSocket/,
    needles: [
      'is neither af_inet',
      'address family not supported by protocol',
      'unsupported ip family',
      'ncclsocketinit: connecting to address',
    ],
    problem: 'an address is of a family that NCCL cannot use here',
    cause: 'there is no interface with an address in this container, IPv6 is off, or hosts found different kinds of interfaces',
    remedy:
      '`ip -br addr` in the container (docker run --net=host); NCCL_SOCKET_FAMILY=AF_INET and NCCL_SOCKET_IFNAME=<the interface that all hosts share>',
  },
  {
    code: 'port-in-use',
    kind: 'fault',
    needles: ['address already in use', 'eaddrinuse'],
    explains: ['store-timeout', 'exit-child', 'store-lost'],
    problem: 'a port is in use already',
    cause: 'a process of the last run, or another job with the same MASTER_PORT',
    remedy: '`ss -ltnp` (the port) on the first host; end that process or set another MASTER_PORT',
  },
  {
    code: 'name-unresolved',
    kind: 'fault',
    needles: [
      'name or service not known',
      'temporary failure in name resolution',
      'error encountered when getting address info',
      'could not resolve host',
    ],
    // PyTorch asks for an address of IPv6 first, and goes on with IPv4.
    except: /\[W[^\]\n]{0,60}socket\.cpp:\d{1,5}\][^\n]{0,40} IPv6 network addresses/,
    explains: ['store-timeout', 'init-unfinished', 'connect-failed'],
    problem: 'a host name cannot be resolved',
    cause: 'the name of the first host (MASTER_ADDR, NCCL_COMM_ID) is unknown on another host',
    remedy: '`getent hosts <name>` on every host; use its IP address',
  },
];
