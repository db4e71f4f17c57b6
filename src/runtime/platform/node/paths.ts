export { basename, delimiter, dirname, join, parse, relative, resolve, sep } from 'node:path';
// webpack replaces `createRequire` imported by name.
export { default as nodeModule } from 'node:module';
export { fileURLToPath, pathToFileURL } from 'node:url';
