/** Bundles of pages have no folder of ours: no frame of a stack is left out. */
export const ownFolder = (): string | undefined => undefined;
