/** Outputs about a machine that do not have all paths between its devices: the first line of each. */
const partialOutputs: readonly (readonly [begins: RegExp, name: string])[] = [
  [/^\s*Machine \(.*\d[GMT]B/m, 'text of lstopo'],
  [/^\s*<topology\b/m, 'XML of lstopo'],
  [/^\s*-\+?-?\[[\da-f]{4}:[\da-f]{2}(?:-[\da-f]{2})?\]-/im, 'a tree of lspci'],
  [/^(?:[\da-f]{4}:)?[\da-f]{2}:[\da-f]{2}\.\d .*: /im, 'a list of lspci'],
  [/^\s*GPU \d+: .*\(UUID: /m, 'a list of nvidia-smi -L'],
  [/^=+ ?NVSMI LOG ?=+/m, 'a report of nvidia-smi -q'],
  [/^\|.*NVIDIA-SMI \d/m, 'the table of nvidia-smi'],
  [/^\s*CA '[^']*'\s*$/m, 'output of ibstat'],
  [/^\S+ port \d+ ==> \S+/m, 'output of ibdev2netdev'],
];
/** Characters of a file that are searched. */
const SEARCHED = 65_536;

/** Name of the tool's output that a text is, if it is one from which alone no machine can be made. */
export function partialOutput(text: string): string | undefined {
  const head = text.slice(0, SEARCHED);
  return partialOutputs.find(([begins]) => begins.test(head))?.[1];
}
