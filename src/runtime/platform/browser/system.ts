import { absent } from './absent.js';

export const constants = { errno: {} as Readonly<Record<string, number>> };
export const availableParallelism = (): number =>
  (globalThis as { readonly navigator?: { readonly hardwareConcurrency?: number } }).navigator?.hardwareConcurrency ?? 1;
export const cpus = (): readonly { readonly model: string }[] =>
  Array.from({ length: availableParallelism() }, () => ({ model: 'browser' }));
export const homedir = (): string => '/';
export const getSystemErrorName = absent('getSystemErrorName');
export const inspect = { custom: Symbol.for('nodejs.util.inspect.custom') };

const tagOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

export const types = {
  isAsyncFunction: (value: unknown): boolean => /^Async(Generator)?Function$/.test(tagOf(value)),
  isGeneratorFunction: (value: unknown): boolean => /^(Async)?GeneratorFunction$/.test(tagOf(value)),
  isPromise: (value: unknown): boolean => value instanceof Promise,
};
