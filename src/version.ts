/** The version in package.json, which a bundle does not have beside it. */
export const version = '0.1.0';
