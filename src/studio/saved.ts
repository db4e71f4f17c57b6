import { InputError } from '../errors.js';

/** A file with a view and all opened files: what `.tccl` files hold, as JSON. */
interface SavedStudio {
  readonly tccl: 'studio';
  readonly version: 1;
  /** The fragment of the page's address. */
  readonly state: string;
  /** Contents in base64. */
  readonly files: readonly { readonly name: string; readonly base64: string }[];
}

/** A file by name. */
interface NamedBlob {
  readonly name: string;
  readonly blob: Blob;
}

/** Writes a view with its files. */
export async function savedStudio(state: string, files: readonly NamedBlob[]): Promise<Blob> {
  const saved: SavedStudio = {
    tccl: 'studio',
    version: 1,
    state,
    files: await Promise.all(
      files.map(async ({ name, blob }) => ({ name, base64: base64Of(new Uint8Array(await blob.arrayBuffer())) })),
    ),
  };
  return new Blob([JSON.stringify(saved)], { type: 'application/json' });
}

/**
 * Reads what {@link savedStudio} wrote.
 *
 * @throws InputError for another file, another version, or a damaged one
 */
export function readSavedStudio(name: string, text: string): { readonly state: string; readonly files: readonly NamedBlob[] } {
  const wrong = (why: string) =>
    new InputError('CONTENT', `${why}; a .tccl file is written by «Save all» of tccl studio`, { file: name });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw wrong('is no JSON');
  }
  if (!isRecord(value) || value['tccl'] !== 'studio') throw wrong('is JSON, but of another program');
  const { version, state, files } = value;
  if (version !== 1) throw wrong(`has version ${JSON.stringify(version)}, and this page reads version 1`);
  if (typeof state !== 'string' || !Array.isArray(files)) throw wrong('has no state or no files');
  return {
    state,
    files: files.map((file: unknown, index): NamedBlob => {
      if (!isRecord(file) || typeof file['name'] !== 'string' || typeof file['base64'] !== 'string')
        throw wrong(`files[${index}] has no name or no contents`);
      return { name: file['name'], blob: blobOf(file['base64'], () => wrong(`the contents of files[${index}] are damaged`)) };
    }),
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Bytes that are converted in one call. */
const STEP = 0x8000;

function base64Of(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += STEP) binary += String.fromCharCode(...bytes.subarray(at, at + STEP));
  return btoa(binary);
}

function blobOf(base64: string, damaged: () => InputError): Blob {
  try {
    return new Blob([Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))]);
  } catch {
    throw damaged();
  }
}
