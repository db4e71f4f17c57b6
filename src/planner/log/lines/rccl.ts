/** Lower-case texts that only RCCL's logs hold. */
export const rcclNeedles: readonly string[] = ['rccl version', 'librccl', '/rccl/'];

/** True for the log of RCCL, by the rules that its lines matched. */
export function isOfRccl({ hits }: { readonly hits: readonly { readonly rule: { readonly code: string } }[] }): boolean {
  return hits.some(({ rule }) => rule.code === 'rccl');
}
