import { absent } from './absent.js';

// Ranks of a page are one program: nothing between them is signed or sealed.
export const createCipheriv = absent('createCipheriv');
export const createDecipheriv = absent('createDecipheriv');
export const createHmac = absent('createHmac');
export const timingSafeEqual = absent('timingSafeEqual');

/** A hash for comparisons, not for secrets: FNV-1a with 64 bits, from four starts. */
export function createHash(): Hash {
  return new Hash();
}

const PRIME = 0x100000001b3n;
const MASK = 0xffffffffffffffffn;

class Hash {
  readonly #words = [0xcbf29ce484222325n, 0x84222325cbf29cen, 0x9e3779b97f4a7c15n, 0x94d049bb133111ebn];

  update(data: string | Uint8Array): this {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data;
    for (let i = 0; i < this.#words.length; i++) {
      let word = this.#words[i] ?? 0n;
      for (const byte of bytes) word = ((word ^ BigInt(byte)) * PRIME) & MASK;
      this.#words[i] = word;
    }
    return this;
  }

  digest(): Uint8Array;
  digest(form: 'hex'): string;
  digest(form?: 'hex'): Uint8Array | string {
    if (form === 'hex') return this.#words.map((word) => word.toString(16).padStart(16, '0')).join('');
    return new Uint8Array(BigUint64Array.from(this.#words).buffer);
  }
}
