import { ownText } from './own-text.js';
import type { InitFacts, LogEvent, NetDevice, Transport, TreeLink } from './events.js';

const other: LogEvent = { kind: 'other' };
const cut: LogEvent = { kind: 'cut' };

/** NCCL has at most 64 channels (32 before 2.22); a larger number was never a channel. */
const CHANNEL_LIMIT = 64;

/**
 * Reads a message of `NCCL INFO` of any NCCL from 2.8 to 2.32. Numbers at the end of a message may be cut off; callers must allow
 * for it.
 */
export function readMessage(message: string): LogEvent {
  // Most lines of a long log are not read: the first word decides.
  switch (message.slice(0, 4)) {
    case 'Chan':
      return readChannel(message);
    case 'Tree':
      return readTrees(message);
    case 'Ring':
      return readRing(message);
    case 'Patt':
      return readPattern(message);
    case 'NCCL':
      return readNccl(message);
    case 'NET/':
      return readNet(message);
    case 'NVLS':
      return readNvls(message);
    case 'Conn':
      return readConnected(message);
    case 'Init':
      return readTiming(message);
    case 'AllR':
    case 'AllG':
    case 'Broa':
    case 'Redu':
    case 'Send':
    case 'Recv':
      return readCall(message) ?? readLater(message);
    case 'Plug':
      return readPluginPath(message);
    case 'Inpu':
      return readTuningInput(message);
    case 'Best':
      return readTuned(message);
    case 'Boot':
      return readBootstrap(message);
    case 'Usin':
      return readUsing(message);
    case 'TOPO':
      return message.includes(' Made vNic ') ? { kind: 'merged-nic' } : other;
    case 'Coll':
      return readCollnet(message);
    case 'Coul':
    case 'peer':
      return /^(?:Could not enable P2P|peer query failed) between dev /.test(message) ? { kind: 'no-p2p', text: message } : other;
    default:
      return readLater(message);
  }
}

/** Messages that begin with a variable part: an address, a count, a node of the topology. */
function readLater(message: string): LogEvent {
  if (message.includes('comm 0x')) return readInit(message);
  if (message.startsWith('[Rank ')) return cut;
  if (message.startsWith('ncclComm')) return cut;
  if (message.includes(' coll channels')) return readCounts(message);
  if (message.includes('/NVL)') || message.includes('+ NVL[')) return { kind: 'nvlink' };
  if (message.includes(' Bytes -> Algo ')) return readChoice(message);
  const [, where, result] = /^(\S+\.(?:cc|cu|c|h):\d+) -> (\d+)\b/.exec(message) ?? [];
  if (where !== undefined) return { kind: 'returned', where, result: Number(result) };
  return other;
}

const initForm =
  /comm (0x[0-9a-f]+) rank (\d+) nranks (\d+) cudaDev (\d+)(?: nvmlDev (\d+))?(?: busId ([0-9a-f]+))?(?: parent (0x[0-9a-f]+))?(?: (?:splitCount|childCount) \d+)?(?: color (-?\d+) key -?\d+)?(?: commId (0x[0-9a-f]+))? ?- (Init START|Init COMPLETE|Destroy COMPLETE|Abort COMPLETE)/;
const nodesForm = /comm 0x[0-9a-f]+ rank (\d+) nRanks (\d+) nNodes (\d+) localRanks \d+ localRank \d+/;

function readInit(message: string): LogEvent {
  const match = initForm.exec(message);
  if (match !== null) {
    const [, address = '', rank, nRanks, cudaDev, nvmlDev, busId, parent, color, commId, phase] = match;
    if (phase === 'Destroy COMPLETE' || phase === 'Abort COMPLETE')
      return {
        kind: 'ended',
        address,
        rank: Number(rank),
        nRanks: Number(nRanks),
        cudaDev: Number(cudaDev),
        aborted: phase === 'Abort COMPLETE',
      };
    const facts: InitFacts = {
      address: ownText(address),
      rank: Number(rank),
      nRanks: Number(nRanks),
      cudaDev: Number(cudaDev),
      ...(nvmlDev === undefined ? {} : { nvmlDev: Number(nvmlDev) }),
      ...(busId === undefined ? {} : { busId: ownText(busId) }),
      ...(commId === undefined ? {} : { commId: ownText(commId) }),
      ...(parent === undefined ? {} : { parent: ownText(parent) }),
      ...(color === undefined ? {} : { color: Number(color) }),
    };
    return { kind: phase === 'Init START' ? 'init-start' : 'init-complete', ...facts };
  }
  const nodes = nodesForm.exec(message);
  if (nodes !== null) return { kind: 'nodes', rank: Number(nodes[1]), nRanks: Number(nodes[2]), nNodes: Number(nodes[3]) };
  const isInit = message.startsWith('comm 0x') || message.startsWith('ncclComm') || message.startsWith('[Rank ');
  return isInit && /\bnranks?\b|\brank \d*$|comm 0x[0-9a-f]*$/.test(message) ? cut : other;
}

const connectionForm = /^Channel (\d+)(?:\/\d+)? : (\d+)\[[0-9a-f]+\] -> (\d+)\[[0-9a-f]+\](?: \[(send|receive)\])? via (.+)$/;
const orderForm = /^Channel (\d+)\/(\d+) :((?: +\d+)+)(.*)$/;

function readChannel(message: string): LogEvent {
  const connection = connectionForm.exec(message);
  if (connection !== null) {
    const [, channel, from, to, end, via = ''] = connection;
    const transport = readTransport(via);
    if (transport === undefined || Number(channel) >= CHANNEL_LIMIT) return cut;
    return {
      kind: 'connection',
      channel: Number(channel),
      from: Number(from),
      to: Number(to),
      end: end === 'receive' ? 'receive' : 'send',
      transport,
    };
  }
  const order = message.includes('[') ? null : orderForm.exec(message);
  if (order === null) return cut;
  const [, channel, nChannels, list = '', rest = ''] = order;
  if (Number(channel) >= CHANNEL_LIMIT) return cut;
  const ranks = list.trim().split(/ +/).map(Number);
  // `12...` is a rank for which NCCL's buffer had no room: digits may be missing.
  if (rest !== '') ranks.pop();
  return { kind: 'ring-order', channel: Number(channel), nChannels: Number(nChannels), ranks, cut: rest !== '' };
}

/** tccl adds the name of the network interface: ` (eth0)`. */
const netForm =
  /^(NET|COLLNET)\/([^/]+)\/(\d+)(?:\((\d+)\))?((?:\/[A-Za-z]{1,40}(?:=[A-Za-z0-9]{1,20})?|\([A-Za-z]{1,20}\)){0,8})(?: \([^()\s]{1,15}\))?$/;
const p2pForm = /^P2P\/(?:(direct pointer)|(CUMEM|IPC|MNNVL)|indirect\/(\d+)\[[0-9a-f]+\])((?:\/[A-Za-z]+)*)(?: .*)?$/;
const shmForm = /^SHM(?:\/([A-Za-z]+)(?:\/([A-Za-z]+))?)?$/;

/** Cache of parsed transports: few different ones repeat on many lines. */
const transports = new Map<string, Transport>();
const TRANSPORT_LIMIT = 1024;

/** `NET/IB/3(5)/GDRDMA/Shared/flush=C2c`, `P2P/CUMEM/read`, `SHM/direct/direct`. */
export function readTransport(text: string): Transport | undefined {
  const known = transports.get(text);
  if (known !== undefined) return known;
  const transport = parseTransport(text);
  if (transport !== undefined && transports.size < TRANSPORT_LIMIT) transports.set(ownText(text), transport);
  return transport;
}

function parseTransport(text: string): Transport | undefined {
  const net = netForm.exec(text);
  if (net !== null) {
    const [, family, cut = '', nic, via, suffixes = ''] = net;
    const network = ownText(cut);
    return {
      family: family === 'NET' ? 'NET' : 'COLLNET',
      name: `${family ?? ''}/${network}`,
      network,
      nic: Number(nic),
      ...(via === undefined ? {} : { via: Number(via) }),
      gdr: suffixes.includes('/GDRDMA'),
    };
  }
  const p2p = p2pForm.exec(text);
  if (p2p !== null) {
    const [, pointer, method, via] = p2p;
    return via === undefined
      ? { family: 'P2P', name: `P2P/${pointer ?? method ?? ''}` }
      : { family: 'P2P', name: 'P2P/indirect', via: Number(via) };
  }
  const shm = shmForm.exec(text);
  return shm === null ? undefined : { family: 'SHM', name: shm[1] === undefined ? 'SHM' : 'SHM/direct' };
}

function readCollnet(message: string): LogEvent {
  const [, channel, rank, end, via = ''] = /^CollNet (\d+)(?:\/\d+)? : (\d+) \[(send|receive)\] via (.+)$/.exec(message) ?? [];
  const transport = readTransport(via);
  if (transport === undefined || channel === undefined) return other;
  return {
    kind: 'connection',
    channel: Number(channel),
    from: Number(rank),
    to: Number(rank),
    end: end === 'receive' ? 'receive' : 'send',
    transport,
  };
}

const linkForm = /\[(\d+)\] (-?\d+(?:\/-?\d+){0,2})->(-?\d+)->(-?\d+)(?:\|[-\d>/]*)?(?= |$)/g;

function readTrees(message: string): LogEvent {
  // `Tree 0 : up -> rank -> down/down/down`, of NCCL_DEBUG_SUBSYS=GRAPH, repeats `Trees`.
  if (!message.startsWith('Trees')) return other;
  const links: TreeLink[] = [];
  let rank: number | undefined;
  for (const [, channel, down = '', own, up] of message.matchAll(linkForm)) {
    rank ??= Number(own);
    if (Number(channel) >= CHANNEL_LIMIT || Number(own) !== rank) break;
    links.push({ channel: Number(channel), down: down.split('/').map(Number), up: Number(up) });
  }
  return rank === undefined || rank < 0 ? cut : { kind: 'trees', rank, links };
}

function readRing(message: string): LogEvent {
  const [, channel, prev, rank, next] = /^Ring (\d+) : (\d+) -> (\d+) -> (\d+)$/.exec(message) ?? [];
  if (channel === undefined || Number(channel) >= CHANNEL_LIMIT) return cut;
  return { kind: 'ring', channel: Number(channel), prev: Number(prev), rank: Number(rank), next: Number(next) };
}

const patternForm =
  /^Pattern (\d), crossNic (\d), nChannels (\d+), (?:bw|speed) ([\d.]+)\/([\d.]+), type ([A-Z0-9]+)\/([A-Z0-9]+), sameChannels (\d)/;

function readPattern(message: string): LogEvent {
  const match = patternForm.exec(message);
  if (match === null) return cut;
  const [, pattern, crossNic, nChannels, bwIntra, bwInter, typeIntra = '', typeInter = '', same] = match;
  return {
    kind: 'search',
    result: {
      pattern: Number(pattern),
      crossNic: Number(crossNic),
      nChannels: Number(nChannels),
      bwIntra: Number(bwIntra),
      bwInter: Number(bwInter),
      typeIntra,
      typeInter,
      sameChannels: same === '1',
    },
  };
}

function readNccl(message: string): LogEvent {
  const version = readVersion(message);
  if (version !== undefined) return { kind: 'version', version };
  // Some have a full stop at the end, some have `set to`: it differs by variable.
  const [, name, value = ''] = /^(NCCL_[A-Z0-9_]+) set (?:by environment )?to (.*?)\.?$/.exec(message) ?? [];
  if (name !== undefined) return { kind: 'environment', name: ownText(name), value: ownText(value) };
  return message.startsWith('NCCL_') || message.startsWith('NCCL version') ? cut : other;
}

/** `NCCL version 2.19.3+cuda12.2`, which also has a line of its own. */
export function readVersion(text: string): string | undefined {
  return /^NCCL version (\d+\.\d+\.\d+[^\s+]*\+cuda\d+\.\d+)/.exec(text)?.[1];
}

function readNet(message: string): LogEvent {
  const [, network, list = ''] = /^NET\/([^:]+?) ?: Using (\[.*)$/.exec(message) ?? [];
  if (network !== undefined) {
    const devices = [...(list.split(';', 1)[0]?.matchAll(/\[(\d+)\]([^\s[:]+)(?::\d{1,3}\/(IB|RoCE)\b)?/g) ?? [])].map(
      ([, number, name = '', link]): NetDevice => ({
        number: Number(number),
        name: ownText(name),
        link: link === undefined ? undefined : ownText(link),
      }),
    );
    return { kind: 'devices', network: ownText(network), devices };
  }
  if (message.startsWith('NET/Plugin')) return readPlugin(message);
  if (message.startsWith('NET/OFI Initializing')) {
    const [, release] = /^NET\/OFI Initializing (aws-ofi-nccl \S{1,40})/.exec(message) ?? [];
    return release === undefined ? other : { kind: 'plugin-release', text: ownText(release) };
  }
  const [, without] = /^NET\/([^:]+?) ?: No device found/.exec(message) ?? [];
  return without === undefined ? other : { kind: 'devices', network: without, devices: [] };
}

function readPlugin(message: string): LogEvent {
  const [, sought] = /^NET\/Plugin ?: Failed to find ncclNetPlugin_v(\d{1,2}) symbol/.exec(message) ?? [];
  if (sought !== undefined) return { kind: 'plugin-sought', version: Number(sought) };
  if (/^NET\/Plugin ?: (?:No plugin found|Could not find: libnccl-net\.so)/.test(message))
    return { kind: 'plugin-path', path: '' };
  const [, name, version] = /^NET\/Plugin ?: Loaded net plugin (.{1,60}) \(v(\d{1,2})\)/.exec(message) ?? [];
  return name === undefined ? other : { kind: 'plugin-loaded', name: ownText(name), version: Number(version) };
}

const callForm =
  /^(AllReduce|AllGather|Broadcast|ReduceScatter|Reduce|Send|Recv): opCount ([0-9a-f]+) sendbuff \S+ recvbuff \S+ count (\d+) datatype (\d+) op (\d+) root (-?\d+) comm (0x[0-9a-f]+) \[nranks=(\d+)\]/;

function readCall(message: string): LogEvent | undefined {
  const [, operation, opCount = '', count, datatype, reduction, root, address = '', nRanks] = callForm.exec(message) ?? [];
  if (operation === undefined) return undefined;
  return {
    kind: 'call',
    operation: ownText(operation),
    opCount: Number.parseInt(opCount, 16),
    count: Number(count),
    datatype: Number(datatype),
    reduction: Number(reduction),
    root: Number(root),
    address: ownText(address),
    nRanks: Number(nRanks),
  };
}

function readPluginPath(message: string): LogEvent {
  const [, path] = /^Plugin Path ?: (\S{1,300})$/.exec(message) ?? [];
  return path === undefined ? other : { kind: 'plugin-path', path };
}

function readBootstrap(message: string): LogEvent {
  const [, name, address] =
    /^Bootstrap ?: Using (?:\[0\])?([^\s:]{1,40}):([0-9a-fA-F.:]{2,60}?)(?:%\S{1,20})?<\d{1,5}>/.exec(message) ?? [];
  return name === undefined || address === undefined
    ? other
    : { kind: 'bootstrap', name: ownText(name), address: ownText(address) };
}

function readUsing(message: string): LogEvent {
  const [, name] = /^Using network (.+)$/.exec(message) ?? [];
  return name === undefined ? other : { kind: 'network', name: ownText(name) };
}

function readNvls(message: string): LogEvent {
  const [, head, list] = /^NVLS Head +(\d+):((?: +\d+)+)$/.exec(message) ?? [];
  if (head !== undefined) return { kind: 'nvls-head', head: Number(head), ranks: (list ?? '').trim().split(/ +/).map(Number) };
  const [, not] = /^NVLS multicast support is (not )?available/.exec(message) ?? [];
  return message.startsWith('NVLS multicast support is ') && message.includes('available')
    ? { kind: 'nvls-support', available: not === undefined }
    : other;
}

function readConnected(message: string): LogEvent {
  const rings = /^Connected all rings(?:, use ring PXN (\d) GDR (\d))?/.exec(message);
  if (rings !== null) {
    const [, pxn, gdr] = rings;
    return { kind: 'connected', what: 'rings', ...(gdr === undefined ? {} : { gdr: gdr === '1', pxn: pxn === '1' }) };
  }
  if (message.startsWith('Connected all trees')) return { kind: 'connected', what: 'trees' };
  if (message.startsWith('Connected NVLS tree')) return { kind: 'connected', what: 'nvls' };
  return message.startsWith('Connected Collnet') ? { kind: 'connected', what: 'collnet' } : other;
}

function readTiming(message: string): LogEvent {
  const [, rank, nRanks, seconds] = /^Init timings(?: - [^:]+)?: rank (\d+) nranks (\d+) total ([\d.]+) \(/.exec(message) ?? [];
  return rank === undefined
    ? other
    : { kind: 'init-timing', rank: Number(rank), nRanks: Number(nRanks), seconds: Number(seconds) };
}

function readCounts(message: string): LogEvent {
  const [, coll, nvls, p2p] =
    /^(\d+) coll channels,(?: \d+ collnet channels,)?(?: (\d+) nvls channels,)? (\d+) p2p channels/.exec(message) ?? [];
  return coll === undefined
    ? cut
    : { kind: 'channel-counts', coll: Number(coll), nvls: nvls === undefined ? undefined : Number(nvls), p2p: Number(p2p) };
}

function readChoice(message: string): LogEvent {
  const [, collective, bytes, algorithm, protocol, low, high] =
    /^(\S+): (\d+) Bytes -> Algo (\S+) proto (\S+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}/.exec(message) ?? [];
  if (collective === undefined || algorithm === undefined || protocol === undefined) return other;
  return { kind: 'choice', collective, bytes: Number(bytes), algorithm, protocol, channels: Number(high) - Number(low) + 1 };
}

function readTuningInput(message: string): LogEvent {
  const [, collective, bytes] = /^Input: \{ .{0,200}?\.func = (\w{1,40}), .{0,200}?\.nBytes = (\d{1,20}),/.exec(message) ?? [];
  return collective === undefined ? other : { kind: 'tuning-input', collective: ownText(collective), bytes: Number(bytes) };
}

const tunedForm =
  /^Best tuning \{ .{0,80}?\.algo = (\w{1,40}), \.proto = (\w{1,40}), \.symKernelId = (\w{1,60}),(?: \.ceMethodId = (\w{1,40}),)? nChannels = (\d{1,4}),/;

/** A general kernel by algorithm and protocol; a symmetric one, or copy engines, by the name alone. */
function readTuned(message: string): LogEvent {
  const [, algorithm = '', protocol = '', kernel = '', copies = '', channels] = tunedForm.exec(message) ?? [];
  const isNamed = (name: string) => name !== '' && name !== 'Unknown';
  if (isNamed(algorithm))
    return { kind: 'tuned', algorithm: ownText(algorithm), protocol: ownText(protocol), channels: Number(channels) };
  const name = isNamed(kernel) ? kernel : isNamed(copies) ? `copy engines ${copies}` : undefined;
  return name === undefined ? other : { kind: 'tuned', algorithm: ownText(name), protocol: '', channels: Number(channels) };
}
