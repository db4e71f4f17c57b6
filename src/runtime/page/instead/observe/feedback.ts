/** The log and the trace are files. */
export const observersOf = (): readonly never[] => [];
