export { reduceCopy, divide, copy } from './reduce';
export * from './local';
