/** Nothing was measured in pages. */
export const defaultProfile = { times: {} };
