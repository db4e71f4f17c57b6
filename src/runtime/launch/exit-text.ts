/** Text such as `exited with code 3`. */
export function describeExit(code: number): string {
  const ofNode =
    code === 13 ? " (Node's for a top-level await that never settled: nothing that it waits for can still happen)" : '';
  return `exited with code ${code}${ofNode}`;
}
