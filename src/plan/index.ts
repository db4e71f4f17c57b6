/**
 * tccl/planner: what NCCL 2.30.7 decides for a machine or cluster. Pure code: it runs in a browser as in Node.
 *
 * @packageDocumentation
 */
export * from '../errors.js';
