import nodeModule from 'node:module';
import { pathToFileURL } from 'node:url';

/**
 * URL of a module of ours that a thread runs.
 *
 * @param url `import.meta.url` of the module beside it; undefined in a bundle in CommonJS
 */
export function ownModule(file: string, url: string | undefined): URL {
  return new URL(file, url ?? pathToFileURL(__filename));
}

/** `require` of this package. webpack replaces `createRequire` imported by name, and must not take in the binaries of koffi. */
export function ownRequire(url: string | undefined): NodeJS.Require {
  return nodeModule.createRequire(url ?? __filename);
}
