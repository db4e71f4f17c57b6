/**
 * Advice for a thread whose module is missing because a bundler put tccl into one file; otherwise the empty string.
 *
 * @param file name of the module, beside the caller's
 */
export function bundleAdvice(error: unknown, file: string): string {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  if (typeof message !== 'string' || !message.startsWith('Cannot find module')) return '';
  const [missing = ''] = message.split(' imported from ');
  if (!missing.includes(file)) return '';
  return (
    `; a bundle has no ${file}: keep tccl out of it ` +
    "(esbuild --external:tccl, Rollup external: ['tccl'], webpack externals: { tccl: 'module tccl' })"
  );
}
