/** Ranks of a page get their place from it: page/place.ts. */
export const threadPlacement = (): undefined => undefined;
