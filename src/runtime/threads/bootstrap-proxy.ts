import type { Introduction, PeerInfo, Scope } from '../bootstrap/bootstrap.js';
import type { TcclError } from '../../errors.js';
import { died } from '../failure/reasons.js';
import { packReason, unpackReason } from '../failure/transfer.js';
import { Ending } from '../failure/ending.js';
import { endReason } from '../failure/end-reason.js';
import { graceMs } from '../failure/grace.js';
import { addTo } from '../../add-to.js';

/** Requests of another thread of a rank to the bootstrap network, which the rank's own thread has. */
export type BootstrapRequest =
  | { readonly kind: 'allGather'; readonly number: number; readonly data: Uint8Array; readonly scope: Scope }
  | { readonly kind: 'send'; readonly number: number; readonly peer: number; readonly tag: number; readonly data: Uint8Array }
  | { readonly kind: 'recv'; readonly number: number; readonly peer: number; readonly tag: number }
  | { readonly kind: 'watch'; readonly number: number; readonly peer: number }
  | { readonly kind: 'waitFor'; readonly number: number; readonly peer: number }
  | { readonly kind: 'waited'; readonly number: number; readonly peer: number }
  | { readonly kind: 'whyGone'; readonly number: number; readonly peer: number }
  | { readonly kind: 'fail'; readonly number: number; readonly reason: Uint8Array };

/** Answers to requests: a result or a packed error; and notices. */
export type Answer =
  | { readonly kind: 'answer'; readonly number: number; readonly value: AnswerValue }
  | { readonly kind: 'refusal'; readonly number: number; readonly reason: Uint8Array }
  | { readonly kind: 'failure'; readonly reason: Uint8Array };

type AnswerValue = Uint8Array | readonly Uint8Array[] | undefined;

/** Returns a function that passes the requests of a thread to the bootstrap network, and returns the answers. */
export function answerer(bootstrap: Introduction): (question: BootstrapRequest) => Promise<Answer> {
  /** Ends of the thread's waits, by rank. */
  const waits = new Map<number, (() => void)[]>();
  return async (question) => {
    const { number } = question;
    try {
      return { kind: 'answer', number, value: await ask(bootstrap, waits, question) };
    } catch (error) {
      return { kind: 'refusal', number, reason: packReason(error as Error) };
    }
  };
}

async function ask(
  bootstrap: Introduction,
  waits: Map<number, (() => void)[]>,
  question: BootstrapRequest,
): Promise<AnswerValue> {
  switch (question.kind) {
    case 'allGather':
      return bootstrap.allGather(question.data, question.scope);
    case 'send':
      await bootstrap.send(question.peer, question.tag, question.data);
      return undefined;
    case 'recv':
      return bootstrap.recv(question.peer, question.tag);
    case 'watch':
      bootstrap.watch(question.peer);
      return undefined;
    case 'waitFor':
      addTo(waits, question.peer, bootstrap.waitFor(question.peer));
      return undefined;
    case 'waited':
      waits.get(question.peer)?.pop()?.();
      return undefined;
    case 'whyGone':
      return packReason(await bootstrap.whyGone(question.peer));
    case 'fail':
      bootstrap.fail(unpackReason(question.reason, bootstrap.rank));
      return undefined;
  }
}

/** Constant part of a bootstrap network. */
export type Members = Pick<Introduction, 'rank' | 'nRanks' | 'peers' | 'localRanks'>;

/** The bootstrap network of a rank, in another thread of that rank. */
export class BootstrapProxy implements Introduction {
  readonly rank: number;
  readonly nRanks: number;
  readonly peers: readonly PeerInfo[];
  readonly localRanks: readonly number[];
  readonly #post: (question: BootstrapRequest) => void;
  readonly #open = new Map<number, { readonly resolve: (value: AnswerValue) => void; readonly reject: (error: Error) => void }>();
  /** The first failure of a member. */
  readonly #ending = new Ending();
  /** True once a call may block the rank's thread, which then gets no notices. */
  rankMayBlock = false;
  #asked = 0;

  /** @param post sends requests to the rank's thread, whose answers go to `take` */
  constructor({ rank, nRanks, peers, localRanks }: Members, post: (question: BootstrapRequest) => void) {
    this.rank = rank;
    this.nRanks = nRanks;
    this.peers = peers;
    this.localRanks = localRanks;
    this.#post = post;
  }

  async allGather(data: Uint8Array, scope: Scope = 'all'): Promise<Uint8Array[]> {
    return [...((await this.#ask((number) => ({ kind: 'allGather', number, data, scope }))) as readonly Uint8Array[])];
  }

  async send(peer: number, tag: number, data: Uint8Array): Promise<void> {
    await this.#ask((number) => ({ kind: 'send', number, peer, tag, data }));
  }

  async recv(peer: number, tag: number): Promise<Uint8Array> {
    return (await this.#ask((number) => ({ kind: 'recv', number, peer, tag }))) as Uint8Array;
  }

  watch(peer: number): void {
    void this.#ask((number) => ({ kind: 'watch', number, peer }));
  }

  waitFor(peer: number): () => void {
    void this.#ask((number) => ({ kind: 'waitFor', number, peer }));
    return () => void this.#ask((number) => ({ kind: 'waited', number, peer }));
  }

  fail(reason: TcclError): void {
    void this.#ask((number) => ({ kind: 'fail', number, reason: packReason(reason) }));
  }

  /** Resolves to the death of the peer if no reason comes soon and the rank's thread may block. */
  async whyGone(peer: number): Promise<Error> {
    const answered = this.#ask((number) => ({ kind: 'whyGone', number, peer })).then((reason) =>
      unpackReason(reason as Uint8Array, this.rank),
    );
    return this.rankMayBlock ? ((await endReason(answered, graceMs.engineThread)) ?? died(peer)) : answered;
  }

  onFailure(listener: (error: Error) => void): () => void {
    return this.#ending.onEnd(listener);
  }

  take(news: Answer): void {
    if (news.kind === 'failure') {
      this.#ending.end(unpackReason(news.reason, this.rank));
      return;
    }
    const asker = this.#open.get(news.number);
    this.#open.delete(news.number);
    if (news.kind === 'answer') asker?.resolve(news.value);
    else asker?.reject(unpackReason(news.reason, this.rank));
  }

  #ask(question: (number: number) => BootstrapRequest): Promise<AnswerValue> {
    const number = this.#asked++;
    return new Promise((resolve, reject) => {
      this.#open.set(number, { resolve, reject });
      this.#post(question(number));
    });
  }
}
