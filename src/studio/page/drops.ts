/** A file and its name, with the folders that it was in. */
interface Dropped {
  readonly name: string;
  readonly blob: Blob;
}

/** Files at most of dropped folders. */
const MOST_FILES = 4096;

/** The files of a drop, and those in dropped folders. */
export async function droppedFiles(transfer: DataTransfer | null): Promise<Dropped[]> {
  // Entries and files have to be taken before the event ends.
  const entries = [...(transfer?.items ?? [])].flatMap((item) => item.webkitGetAsEntry() ?? []);
  const plain = [...(transfer?.files ?? [])].map((blob) => ({ name: blob.name, blob }));
  if (!entries.some(({ isDirectory }) => isDirectory)) return plain;
  const found: Dropped[] = [];
  while (found.length < MOST_FILES) {
    const entry = entries.shift();
    if (entry === undefined) break;
    if (isFolder(entry)) entries.push(...(await entriesOf(entry)));
    else if (isFile(entry)) found.push({ name: entry.fullPath.replace(/^\//, ''), blob: await fileOf(entry) });
  }
  return found.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

/** All entries of a folder, which gives them in portions. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}
