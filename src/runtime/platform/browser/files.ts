import { absent } from './absent.js';

export const constants: Readonly<Record<string, number>> = {};
export const closeSync = absent('closeSync');
export const existsSync = (): boolean => false;
export const fstatSync = absent('fstatSync');
export const openSync = absent('openSync');
export const promises = { open: absent('open'), rename: absent('rename'), rm: absent('rm') };
export const readFileSync = absent('readFileSync');
export const readSync = absent('readSync');
export const readdirSync = absent('readdirSync');
export const readlinkSync = absent('readlinkSync');
export const renameSync = absent('renameSync');
export const writeFileSync = absent('writeFileSync');
/** Writes to standard error, which is a page's console. */
export const writeSync = (_: number, text: unknown): void => {
  // eslint-disable-next-line no-console -- where a page's warnings go
  if (typeof text === 'string') console.warn(text.trimEnd());
};
