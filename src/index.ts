/**
 * tccl: collective communication for TypeScript.
 *
 * @packageDocumentation
 */
export * from './errors.js';
