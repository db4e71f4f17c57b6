import { MAY_BLOCK } from '#platform/process';
import { InvalidUsageError, namingCall, SystemError } from '../../errors.js';
import { afterWatching } from '../progress/watch-clock.js';
import type { Port } from './port-connection.js';

/** First message of a page to a rank that it has started. */
export interface PagePlace {
  readonly rank: number;
  readonly nRanks: number;
  /** Memory of all ranks. */
  readonly memory: WebAssembly.Memory;
  /** A port to each other rank; undefined in the place of this one. */
  readonly lines: readonly (Port | undefined)[];
  /** For news of the page. */
  readonly control: Port;
  /** Name of a lock that this worker holds as long as it lives. */
  readonly lock: string;
  readonly env: Readonly<Record<string, string>>;
  /** For jobs, if a pool starts it. */
  readonly jobs?: Port;
}

/** A place as its rank has it. */
export interface RankPlace extends PagePlace {
  /** Sends a message to the page, in order with those of the program. */
  readonly post: (message: ToPage) => void;
}

/** Messages from a rank to its page, in a member PLACE, among those of the program. */
export type ToPage =
  | { readonly kind: 'lives' }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** All communicators are closed. */
  | { readonly kind: 'ended' };

/** Messages from the page to a rank. */
export interface ToRank {
  readonly kind: 'died';
  readonly rank: number;
  readonly why: string;
}

/** Member of messages that are not the program's. */
export const PLACE = 'tccl:place';

/** Parts of a browser's worker that Node's types do not have. */
interface WorkerScope {
  addEventListener(kind: string, listener: (event: WorkerEvent) => void): void;
  postMessage(message: unknown): void;
  readonly navigator: { readonly locks?: { request(name: string, hold: () => Promise<never>): Promise<unknown> } };
  readonly crossOriginIsolated?: boolean;
}

interface WorkerEvent {
  readonly data?: unknown;
  readonly ports?: readonly Port[];
  readonly error?: unknown;
  readonly reason?: unknown;
  readonly message?: string;
  preventDefault(): void;
  stopImmediatePropagation(): void;
}

/** A page sends the place in the task that starts the worker, before its module runs. */
const PLACE_MS = 5000;

const scope = globalThis as unknown as WorkerScope;

let resolvePlace: (place: RankPlace) => void;
const given = new Promise<RankPlace>((resolve) => (resolvePlace = resolve));

/** The place comes as the first message: the listener is there before the program's own. */
if (MAY_BLOCK) {
  scope.addEventListener('message', (event) => {
    const place = (event.data as { readonly [PLACE]?: PagePlace } | null | undefined)?.[PLACE];
    if (place === undefined) return;
    event.stopImmediatePropagation();
    takePlace(place);
  });
}

function takePlace(place: PagePlace): void {
  const post = (message: ToPage): void => scope.postMessage({ [PLACE]: message });
  const fail = (error: unknown): void => {
    try {
      post({ kind: 'failed', error });
    } catch {
      post({ kind: 'failed', error: String(error) });
    }
  };
  // The page has these errors: the console need not.
  scope.addEventListener('error', (event) => {
    event.preventDefault();
    fail(event.error ?? event.message);
  });
  scope.addEventListener('unhandledrejection', (event) => {
    event.preventDefault();
    fail(event.reason);
  });
  // The lock is free again however the worker ends: the page has no other sign of that.
  void scope.navigator.locks?.request(place.lock, () => {
    post({ kind: 'lives' });
    return new Promise<never>(() => undefined);
  });
  resolvePlace({ ...place, post });
}

/** The place of this rank; undefined in the page's own thread. */
export function placeHere(call: 'init' | 'servePool', timeoutMs = PLACE_MS): Promise<RankPlace | undefined> {
  if (!MAY_BLOCK) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const [start, others] =
      call === 'init' ? ['spawnRanks', '; a worker without others calls init({ rank: 0, nRanks: 1 })'] : ['openPool', ''];
    const why =
      `${call}: no ${start} gave this worker a place within ${timeoutMs / 1000} s: start it with ${start}, and import ` +
      `tccl/browser at its top level${others}`;
    const lift = afterWatching(timeoutMs, () => reject(namingCall(new InvalidUsageError('RANK_UNKNOWN', why))));
    void given.then((place) => {
      lift();
      resolve(place);
    });
  });
}

/** The place of this rank of a pool. */
export async function placeOfPool(): Promise<RankPlace & { readonly jobs: Port }> {
  const place = await placeHere('servePool');
  if (place?.jobs === undefined)
    throw new InvalidUsageError(
      'RANK_UNKNOWN',
      'servePool: no pool started this worker; openPool does, and init is for spawnRanks',
    );
  return { ...place, jobs: place.jobs };
}

/** Throws SystemError `SHARED_MEMORY` where workers of this page cannot share memory. */
export function checkIsolated(call: string): void {
  if (scope.crossOriginIsolated === true && typeof SharedArrayBuffer !== 'undefined') return;
  throw namingCall(
    new SystemError(
      'SHARED_MEMORY',
      `${call}: this page is not cross-origin isolated, so its workers cannot share memory: serve it with the headers ` +
        'Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp (or credentialless); ' +
        'where you cannot set headers, a service worker can: see the guide "Run ranks in a page"',
    ),
  );
}
