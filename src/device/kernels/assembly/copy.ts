export function copy(destination: usize, source: usize, bytes: usize): void {
  let i: usize = 0;
  for (; i + 64 <= bytes; i += 64) {
    const v0 = v128.load(source + i), v1 = v128.load(source + i, 16);
    const v2 = v128.load(source + i, 32), v3 = v128.load(source + i, 48);
    v128.store(destination + i, v0);
    v128.store(destination + i, v1, 16);
    v128.store(destination + i, v2, 32);
    v128.store(destination + i, v3, 48);
  }
  for (; i < bytes; i++) store<u8>(destination + i, load<u8>(source + i));
}
