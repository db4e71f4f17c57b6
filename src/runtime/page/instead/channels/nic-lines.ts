/** A page has no network interfaces. */
export const nicLines = (): readonly string[] => [];
