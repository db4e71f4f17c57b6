/** NCCL's hash of 64 bits (`getHash` in its bitops.h), with its constants and order, so that ids are equal. */
export function hashBytes(bytes: Uint8Array): bigint {
  let high = 1n ^ BigInt(bytes.length);
  let low = 1n;
  for (let offset = 0; offset < bytes.length; offset += 8) {
    high = wrap(high + low);
    low ^= high;
    high ^= high >> 31n;
    high = wrap(high * 0x9de62bbc8cef3ce3n);
    low ^= low >> 32n;
    low = wrap(low * 0x485cd6311b599e79n);
    high = wrap(high + littleEndian(bytes.subarray(offset, offset + 8)));
  }
  let hash = high;
  hash ^= hash >> 31n;
  hash = wrap(hash * 0xbac3bd562846de6bn);
  hash = wrap(hash + low);
  hash ^= hash >> 32n;
  return wrap(hash * 0x995a187a14e7b445n);
}

const wrap = (value: bigint) => BigInt.asUintN(64, value);

function littleEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let index = bytes.length - 1; index >= 0; index--) value = (value << 8n) | BigInt(bytes[index] ?? 0);
  return value;
}
