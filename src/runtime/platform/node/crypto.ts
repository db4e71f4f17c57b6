export { createCipheriv, createDecipheriv, createHash, createHmac, timingSafeEqual } from 'node:crypto';
