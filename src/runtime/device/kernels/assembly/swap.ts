/** Exchanges the contents of two ranges that do not overlap. */
export function swap(a: usize, b: usize, bytes: usize): void {
  let i: usize = 0;
  for (; i + 32 <= bytes; i += 32) {
    const a0 = v128.load(a + i), a1 = v128.load(a + i, 16);
    const b0 = v128.load(b + i), b1 = v128.load(b + i, 16);
    v128.store(a + i, b0);
    v128.store(a + i, b1, 16);
    v128.store(b + i, a0);
    v128.store(b + i, a1, 16);
  }
  for (; i < bytes; i++) {
    const byte = load<u8>(a + i);
    store<u8>(a + i, load<u8>(b + i));
    store<u8>(b + i, byte);
  }
}
