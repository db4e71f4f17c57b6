/** NCCL 2.30.7's own treatment of something that tccl accepts. */
export type NoteEffect =
  /** Its parser fails here, so that it uses nothing of the file. */
  | 'refuse'
  /** It ignores this. */
  | 'ignore'
  /** It reads a different value. */
  | 'misread';

/** A difference between tccl's and NCCL's reading of a file. */
export interface XmlNote {
  readonly effect: NoteEffect;
  /** One line, without the place: `NCCL itself would refuse this: …`. */
  readonly message: string;
  /** Place where it first occurs, 1-based. */
  readonly line: number;
  /** 1-based. */
  readonly column: number;
  /** Number of times that it occurs in the file. */
  readonly count: number;
}

/** Limit of kinds of notes: a hostile file must not fill the memory with them. */
const MAX_NOTES = 500;

/** Collects notes; the same message at several places is one note with a count. */
export class NoteList {
  readonly #notes = new Map<string, { -readonly [Key in keyof XmlNote]: XmlNote[Key] }>();

  /**
   * `what` completes the sentence "NCCL itself would refuse this: …"; `hint` is asked once and adds to it.
   */
  add(
    effect: NoteEffect,
    what: string,
    place: { readonly line: number; readonly column: number },
    hint: () => string = () => '',
  ): void {
    const known = this.#notes.get(what);
    if (known !== undefined) known.count++;
    else if (this.#notes.size < MAX_NOTES) {
      const message = `NCCL itself would ${effect} this: ${what}${hint()}`;
      this.#notes.set(what, { effect, message, line: place.line, column: place.column, count: 1 });
    }
  }

  /** In the order of their first places. */
  list(): XmlNote[] {
    return [...this.#notes.values()].sort((a, b) => a.line - b.line || a.column - b.column);
  }
}

/** `file:12:3: NCCL itself would … (4 times)`. */
export function describeNote(note: XmlNote, fileName?: string): string {
  const place = [fileName, note.line, note.column].filter((part) => part !== undefined).join(':');
  return `${place}: ${note.message}${note.count > 1 ? ` (${note.count} times)` : ''}`;
}
