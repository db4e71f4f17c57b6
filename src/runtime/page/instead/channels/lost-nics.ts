/** A page has no network interfaces to lose. */
export const failedNics = (): object => ({});
export const withoutNics = <T>(location: T): T => location;
