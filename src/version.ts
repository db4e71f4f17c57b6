/** The version in package.json, which a bundle does not have beside it. */
export const version = '0.1.0';

/** Short hash of the code of this build, because builds of one version may differ; empty where modules run as they are. */
export const BUILD: string = '';
