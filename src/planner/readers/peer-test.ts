import type { TextPlace, ToolFormat, ToolLine } from './section.js';

/** `p2pBandwidthLatencyTest` of the CUDA samples: bandwidths between GPUs with P2P and without it. */
export interface PeerTest {
  /** Pairs of GPUs that may use P2P, as `0 1`. */
  readonly peers: ReadonlySet<string>;
  /** By pair, GB/s in one direction. */
  readonly disabled: ReadonlyMap<string, number>;
  readonly enabled: ReadonlyMap<string, number>;
  /** The heading of the table with P2P; undefined where the test did not come to it. */
  readonly enabledAt: TextPlace | undefined;
}

export const peerTest: ToolFormat<'p2pBandwidthLatencyTest', PeerTest> = {
  name: 'p2pBandwidthLatencyTest',
  commands: ['p2pBandwidthLatencyTest'],
  holds: /^\s*(?:D\\D|(?:Uni|Bi)directional P2P=|P2P (?:Connectivity|=|Writes)|\d{1,3}(?:\s+\d+(?:\.\d+)?){1,64}\s*$|Device[:=])/,
  needles: ['[p2p (peer-to-peer) gpu bandwidth latency test]', 'p2p connectivity matrix'],
  begins: /^\s*\[?P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]|^\s*P2P Connectivity Matrix/,
  restarts: /^\s*\[?P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]/,
  parse: parsePeerTest,
};

type Table = 'peers' | 'disabled' | 'enabled' | 'other';

function tableOf(text: string): Table | undefined {
  if (text.includes('P2P Connectivity Matrix')) return 'peers';
  if (text.includes('Unidirectional P2P=Disabled')) return 'disabled';
  if (text.includes('Unidirectional P2P=Enabled')) return 'enabled';
  return /directional P2P=|^\s*P2P=/.test(text) ? 'other' : undefined;
}

function parsePeerTest(lines: readonly ToolLine[]): PeerTest | undefined {
  const numbers = {
    peers: new Map<string, number>(),
    disabled: new Map<string, number>(),
    enabled: new Map<string, number>(),
    other: new Map<string, number>(),
  };
  let table: Table = 'other';
  let columns: string[] = [];
  let enabledAt: TextPlace | undefined;
  for (const { text, place } of lines) {
    const next = tableOf(text);
    if (next !== undefined) {
      table = next;
      columns = [];
      if (next === 'enabled') enabledAt ??= place;
      continue;
    }
    const fields = text.trim().split(/\s+/);
    const [first = ''] = fields;
    if (first === 'D\\D') columns = fields.slice(1);
    else if (/^\d+$/.test(first) && fields.length === columns.length + 1)
      for (const [index, column] of columns.entries())
        if (column !== first) numbers[table].set(`${first} ${column}`, Number(fields[index + 1]));
  }
  const peers = new Set([...numbers.peers].flatMap(([pair, isPeer]) => (isPeer === 1 ? [pair] : [])));
  return peers.size === 0 && numbers.disabled.size === 0
    ? undefined
    : { peers, disabled: numbers.disabled, enabled: numbers.enabled, enabledAt };
}
