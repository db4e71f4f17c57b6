/**
 * Classes of the platform in the public declarations, with the types of DOM or Node, whichever a program compiles with, so
 * that neither is required.
 */
export type PlatformAbortSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } } ? Signal : object;
export type PlatformURL = typeof globalThis extends { URL: { prototype: infer Url } } ? Url : object;

/** An object that `await using` disposes of, where the program's library has that. */
export type PlatformAsyncDisposable = SymbolConstructor extends { readonly asyncDispose: infer Dispose extends symbol }
  ? Readonly<Record<Dispose, () => Promise<void>>>
  : object;

/** An object that `using` disposes of, where the program's library has that. */
export type PlatformDisposable = SymbolConstructor extends { readonly dispose: infer Dispose extends symbol }
  ? Readonly<Record<Dispose, () => void>>
  : object;

/** Makes `await using` close objects of a class. Node.js has the symbol from 20.4 on. */
export function closeAtEndOfBlock(prototype: { close(): Promise<void> }): void {
  const { asyncDispose } = Symbol as { readonly asyncDispose?: symbol };
  if (asyncDispose === undefined) return;
  Object.defineProperty(prototype, asyncDispose, {
    value(this: typeof prototype): Promise<void> {
      return this.close();
    },
  });
}
