export { copy } from './copy';
export { divide } from './divide';
export { reduceCopy } from './reduce';
export * from './local';
