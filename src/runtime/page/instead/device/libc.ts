export const POLLIN = 1;
export const POLLOUT = 4;
export const setPollEntry = (): void => undefined;
export const loadLibc = (): { readonly libc?: undefined; readonly reason: string } => ({ reason: 'a page has no C library' });
