import { execFileSync } from 'node:child_process';

/** Reason why packets can't be filtered here; undefined where they can. Hosts are needed, too. */
export function whyNoFirewall(): string | undefined {
  try {
    execFileSync('nft', ['--version'], { stdio: 'pipe' });
    return undefined;
  } catch {
    return 'the command nft (package nftables) is missing';
  }
}

/** Filters what a host receives or sends, by rules of nft, until the returned function is called. */
export function filter(host: readonly string[], hook: 'input' | 'output' | 'forward', ...rules: readonly string[]): () => void {
  nft(host, 'add table inet filters');
  nft(host, `add chain inet filters of-${hook} { type filter hook ${hook} priority 0; }`);
  for (const rule of rules) nft(host, `add rule inet filters of-${hook} ${rule}`);
  return () => nft(host, 'delete table inet filters');
}

/** Runs a command of nft on a host. */
export function nft(host: readonly string[], command: string): void {
  const [ip = '', ...rest] = host;
  execFileSync(ip, [...rest, 'nft', command], { stdio: 'pipe' });
}
