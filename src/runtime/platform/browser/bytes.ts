/** Without the static methods, whose arguments differ. */
const Base = Uint8Array as unknown as new (from: number | ArrayBuffer) => Uint8Array<ArrayBuffer>;

/** The methods of Node's Buffer that the runtime calls on bytes of its own. */
export class Buffer extends Base {
  static alloc(length: number): Buffer {
    return new Buffer(length);
  }

  static from(given: unknown, form?: 'base64'): Buffer {
    if (form === 'base64') return fromText(atob(given as string), (char) => char.charCodeAt(0));
    const bytes =
      given instanceof ArrayBuffer ? new Uint8Array(given) : typeof given === 'string' ? new TextEncoder().encode(given) : given;
    // As in Node.js, a Buffer over an ArrayBuffer shares its memory, and one of bytes is a copy.
    if (given instanceof ArrayBuffer) return new Buffer(given);
    const copy = new Buffer((bytes as Uint8Array).length);
    copy.set(bytes as Uint8Array);
    return copy;
  }

  static of(...bytes: readonly number[]): Buffer {
    return Buffer.from(Uint8Array.from(bytes));
  }

  static concat(parts: readonly Uint8Array[]): Buffer {
    const all = new Buffer(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  static isBuffer(value: unknown): boolean {
    return value instanceof Buffer;
  }

  readUInt32LE(at: number): number {
    return new DataView(this.buffer, this.byteOffset).getUint32(at, true);
  }

  writeUInt32LE(value: number, at: number): number {
    new DataView(this.buffer, this.byteOffset).setUint32(at, value, true);
    return at + 4;
  }

  override toString(form?: 'base64'): string {
    return form === 'base64'
      ? btoa(Array.from(this, (byte) => String.fromCharCode(byte)).join(''))
      : new TextDecoder().decode(this);
  }
}

function fromText(text: string, code: (char: string) => number): Buffer {
  return Buffer.from(Uint8Array.from(text, code));
}
