import type { Ending } from '../failure/ending.js';
import type { Message, MessageHeader } from './rank-connection.js';
import { addTo } from '../../add-to.js';

interface Waiter {
  readonly resolve: (message: Message) => void;
  readonly reject: (error: Error) => void;
}

/** Messages from one rank, by space and number, and the receivers that wait for them. */
export class Mailbox {
  /** Messages that nobody has taken yet, oldest first. */
  readonly #messages = new Map<string, Message[]>();
  /** Waiting receivers, oldest first. At most one of the two maps has a key. */
  readonly #waiters = new Map<string, Waiter[]>();
  readonly #ending: Ending;
  /** Reasons why no more messages of a space will arrive. */
  readonly #ended = new Map<number, Error>();

  /** @param ending after which no more messages will arrive: waiting and later receivers reject */
  constructor(ending: Ending) {
    this.#ending = ending;
    ending.onEnd((error) => {
      for (const waiters of this.#waiters.values()) for (const { reject } of waiters) reject(error);
      this.#waiters.clear();
    });
  }

  deliver(message: Message): void {
    const key = keyOf(message);
    const waiter = shift(this.#waiters, key);
    if (waiter === undefined) addTo(this.#messages, key, message);
    else waiter.resolve(message);
  }

  /** Takes the next message. Messages from before the end can still be taken. */
  take(header: Pick<MessageHeader, 'space' | 'number'>): Promise<Message> {
    const key = keyOf(header);
    const message = shift(this.#messages, key);
    if (message !== undefined) return Promise.resolve(message);
    const reason = this.#ending.reason ?? this.#ended.get(header.space);
    if (reason !== undefined) return Promise.reject(reason);
    return new Promise((resolve, reject) => addTo(this.#waiters, key, { resolve, reject }));
  }

  /** No more messages of a space will arrive. */
  end(space: number, error: Error): void {
    this.#ended.set(space, error);
    this.#rejectWaiters(space, error);
  }

  /** Drops the messages of a space; waiting receivers reject with `error`. */
  leave(space: number, error: Error): void {
    for (const key of this.#messages.keys()) if (key.startsWith(`${space}/`)) this.#messages.delete(key);
    this.#ended.delete(space);
    this.#rejectWaiters(space, error);
  }

  /** Drops all messages. */
  clear(): void {
    this.#messages.clear();
  }

  #rejectWaiters(space: number, error: Error): void {
    for (const [key, waiters] of this.#waiters) {
      if (!key.startsWith(`${space}/`)) continue;
      this.#waiters.delete(key);
      for (const { reject } of waiters) reject(error);
    }
  }
}

function keyOf({ space, number }: Pick<MessageHeader, 'space' | 'number'>): string {
  return `${space}/${number}`;
}

function shift<T>(lists: Map<string, T[]>, key: string): T | undefined {
  const list = lists.get(key);
  const value = list?.shift();
  if (list?.length === 0) lists.delete(key);
  return value;
}
