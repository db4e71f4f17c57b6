/**
 * Classes of the platform that the public declarations name: as DOM's or Node's types declare them, whichever a program
 * compiles with, so that neither is needed.
 */
export type PlatformAbortSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } } ? Signal : object;
export type PlatformURL = typeof globalThis extends { URL: { prototype: infer Url } } ? Url : object;
