import nodeModule from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * URL of this module; undefined in a bundle in CommonJS. Only this module asks for its own URL: the build joins modules of the
 * package in files of this folder.
 */
const OWN_URL = import.meta.url as string | undefined;

/** URL of a module of ours that a thread or a process runs, by its path from here. */
export function ownModule(path: string): URL {
  return new URL(path, OWN_URL ?? pathToFileURL(__filename));
}

/** Path of a module of ours. */
export function ownPath(path: string): string {
  return fileURLToPath(ownModule(path));
}

/** Path of the folder of our modules as URLs have it; undefined in a bundle in CommonJS. */
export function ownFolder(): string | undefined {
  return OWN_URL === undefined ? undefined : new URL('./', OWN_URL).pathname;
}

/** `require` of this package. webpack replaces `createRequire` imported by name, and must not take in the binaries of koffi. */
export function ownRequire(): NodeJS.Require {
  return nodeModule.createRequire(OWN_URL ?? __filename);
}
