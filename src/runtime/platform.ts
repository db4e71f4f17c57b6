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
