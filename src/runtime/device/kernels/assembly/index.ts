export { BLOCK_BYTES } from './control-block';
export { copy, copyBackward } from './copy';
export { divide } from './divide';
export { reduceCopy } from './reduce';
export { reduceScaled } from './scaled';
export * from './local';
export { postPiece, takeMessage } from './messages';
export { swap } from './swap';
export { postFlagged, takeFlagged } from './low-latency';
