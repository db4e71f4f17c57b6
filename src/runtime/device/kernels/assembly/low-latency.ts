// Messages whose words carry their own flags (NCCL's protocol LL): each 8 bytes of a line are 4 bytes of data and a flag, stored
// together. The receiver polls only the data itself, so that a short message is one cache line that moves from core to core.
//
//     length, flag | header words, each with the flag … | data words, each with the flag …
//
// A message in memory has a header of `headerBytes` bytes, of which only the first `headerWords` words carry a value.

/** Writes the message of `bytes` bytes at `source` to a line; `fillWords` more words get the flag too. */
export function postFlagged(line: usize, flag: u32, source: usize, bytes: u32, headerWords: u32, headerBytes: u32, fillWords: u32): void {
  const high = (flag as u64) << 32;
  store<u64>(line, high | (bytes as u64));
  let to = line + 8;
  for (let i: u32 = 0; i < headerWords; i++, to += 8) store<u64>(to, high | (load<u32>(source + (i << 2)) as u64));
  let from = source + headerBytes;
  const end = source + bytes;
  const flags = i32x4.splat(flag);
  for (; from + 16 <= end; from += 16, to += 32) {
    const data = v128.load(from);
    v128.store(to, v128.shuffle<i32>(data, flags, 0, 4, 1, 4));
    v128.store(to, v128.shuffle<i32>(data, flags, 2, 4, 3, 4), 16);
  }
  for (; from < end; from += 4, to += 8) store<u64>(to, high | (load<u32>(from) as u64));
  for (let i: u32 = 0; i < fillWords; i++, to += 8) store<u64>(to, high);
}

/** Reads the message of a line to `destination`; returns its length, or -1 until all of it has arrived. */
export function takeFlagged(line: usize, flag: u32, destination: usize, headerWords: u32, headerBytes: u32): i32 {
  const first = atomic.load<u64>(line);
  if (((first >> 32) as u32) != flag) return -1;
  const bytes = first as u32;
  let from = line + 8;
  for (let i: u32 = 0; i < headerWords; i++, from += 8) {
    const word = atomic.load<u64>(from);
    if (((word >> 32) as u32) != flag) return -1;
    store<u32>(destination + (i << 2), word as u32);
  }
  let to = destination + headerBytes;
  const end = destination + bytes;
  let missing = i32x4.splat(0);
  const flags = i32x4.splat(flag);
  for (; to + 16 <= end; to += 16, from += 32) {
    const a = v128.load(from);
    const b = v128.load(from, 16);
    missing = v128.or(missing, v128.xor(v128.shuffle<i32>(a, b, 1, 3, 5, 7), flags));
    v128.store(to, v128.shuffle<i32>(a, b, 0, 2, 4, 6));
  }
  if (v128.any_true(missing)) return -1;
  for (; to < end; to += 4, from += 8) {
    const word = atomic.load<u64>(from);
    if (((word >> 32) as u32) != flag) return -1;
    store<u32>(to, word as u32);
  }
  return bytes as i32;
}
