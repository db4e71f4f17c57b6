import { absent } from '../../../platform/browser/absent.js';

// Ranks of a page share memory.
export const networks: readonly { readonly name: string }[] = [];
export const SOCKET_NET = 'socket';
export const networkNamed = (name: string): object => ({ name, choosesNics: true, open: absent('a network') });
export const networkText = (name: string): string => name;
export const wayOf = (name: string): string => name;
export const logNameOf = (transport: string): string => transport.toUpperCase();
