export { default as process } from 'node:process';

/** False in a thread that must not block: a page's own. */
export const MAY_BLOCK: boolean = true;
