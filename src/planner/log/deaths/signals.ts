/** Signals of Linux that end processes, by number, with the words of shells, launchers and kernels for them. */
const signals: readonly (readonly [number: number, name: string, words: readonly string[]])[] = [
  [1, 'SIGHUP', ['hangup']],
  [2, 'SIGINT', ['interrupt']],
  [3, 'SIGQUIT', ['quit']],
  [4, 'SIGILL', ['illegal instruction']],
  [6, 'SIGABRT', ['aborted', 'abort']],
  [7, 'SIGBUS', ['bus error']],
  [8, 'SIGFPE', ['floating point exception', 'floating exception', 'arithmetic exception']],
  [9, 'SIGKILL', ['killed', 'kill']],
  [11, 'SIGSEGV', ['segmentation fault', 'segv']],
  [13, 'SIGPIPE', ['broken pipe']],
  [15, 'SIGTERM', ['terminated', 'term']],
];

/** The number of a signal from its number, name or a launcher's words. */
export function signalNumber(text: string): number | undefined {
  const word = text
    .trim()
    .toLowerCase()
    .replace(/^signals?\./, '')
    .replace(/ ?\(core dumped\)$/, '');
  if (/^\d{1,2}$/.test(word)) return Number(word);
  return signals.find(([, name, words]) => name.toLowerCase() === word || words.includes(word))?.[0];
}

/** The signal that an exit code stands for: `-9` in Python, 137 in shells and containers. */
export function signalOfCode(code: number): number | undefined {
  if (code < 0 && code > -65) return -code;
  return code > 128 && code < 128 + 65 ? code - 128 : undefined;
}

export function signalName(number: number): string {
  return signals.find(([known]) => known === number)?.[1] ?? `signal ${number}`;
}
