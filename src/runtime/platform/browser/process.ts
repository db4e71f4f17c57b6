/** Replacement of Node's process in a page. */
export const process = {
  pid: 0,
  platform: 'browser',
  arch: 'wasm',
  versions: {} as Readonly<Record<string, string>>,
  env: {} as Readonly<Record<string, string>>,
  execArgv: [] as readonly string[],
  exitCode: undefined as number | undefined,
  // A worker gets no notice of its end.
  on: (): void => undefined,
  removeListener: (): void => undefined,
  stderr: {
    // eslint-disable-next-line no-console -- where a page's warnings go
    write: (text: string): void => console.warn(text.trimEnd()),
  },
};

/** A page's own thread must not block; its workers may. */
export const MAY_BLOCK: boolean = 'WorkerGlobalScope' in globalThis;
