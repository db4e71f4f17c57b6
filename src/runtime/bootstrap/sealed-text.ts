import { Buffer } from '#platform/bytes';
import { createCipheriv, createDecipheriv, createHmac } from '#platform/crypto';
import { randomBytes } from '../platform/platform.js';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a text with `secret`, as base64: `nonce | tag | encrypted`. The bootstrap network authenticates messages, but does
 * not encrypt them.
 */
export function sealText(text: string, secret: Uint8Array): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, keyOf(secret), nonce);
  const encrypted = [cipher.update(text, 'utf8'), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...encrypted]).toString('base64');
}

/** Decrypts the text of {@link sealText}. Throws if it was encrypted with another secret, or changed. */
export function openText(sealed: string, secret: Uint8Array): string {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv(CIPHER, keyOf(secret), bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
}

function keyOf(secret: Uint8Array): Buffer {
  return createHmac('sha256', secret).update('tccl sealed text').digest();
}
