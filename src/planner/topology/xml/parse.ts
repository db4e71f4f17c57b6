import { SaxesParser, type SaxesTagPlain } from 'saxes';
import { InputError, type ErrorCode, ncclResults } from '../../../errors.js';
import { didYouMean } from '../../../suggest.js';
import { commentTrouble, endTagTrouble, startTagTroubles, textTrouble, type LexicalTrouble } from './lexical.js';
import { NoteList, type XmlNote } from './notes.js';
import { attributeNames, isKnownAttribute, isKnownElement, knownChildren, ncclLimits, rootNames } from './schema.js';
import { createElement, describeElement, shorten, type XmlElement } from './tree.js';

/** Limits of a file. The largest real topologies (a rack with 72 GPUs) have under 1 MB and 10,000 elements. */
export const xmlLimits = {
  /** UTF-16 units of text, 64 Mi; check a file's size against this before reading it. */
  length: 64 * 1024 * 1024,
  /** Elements within elements; NCCL's own walks give up at 256. */
  depth: 256,
  /** Elements and attributes together; they take some 400 bytes each. */
  parts: 400_000,
} as const;

interface ParseOptions {
  /** For messages. */
  readonly fileName?: string;
}

/** A text as a tree. */
export interface ParsedXml {
  readonly root: XmlElement;
  /** Parts that NCCL itself would refuse, ignore or misread, in the order of the file. */
  readonly notes: readonly XmlNote[];
}

/**
 * Reads a topology (`NCCL_TOPO_FILE`, a dump) or graph (`NCCL_GRAPH_FILE`) XML into a tree. `validateTopology` checks its
 * contents.
 *
 * Everything in the file is kept. Notes report where NCCL's own parser would stop or differ: XML declaration, tabs, line breaks
 * inside tags, stray text, entities, more than 16 attributes, 640 children or 255 elements, long values, unknown elements and
 * attributes.
 *
 * @throws InputError `SYNTAX` where it is not XML or ends too early, `TOO_LARGE` past {@link xmlLimits}; with line
 *   and column.
 */
export function parseXml(text: string, options: ParseOptions = {}): ParsedXml {
  return new Reader(text, options.fileName).read();
}

/** Harmless faults of a file; those that matter to NCCL become notes at their place. */
const tolerated = new Set([
  'text data outside of root node.',
  'undefined entity.',
  'disallowed character in entity name.',
  'empty entity name.',
  'malformed comment.',
]);

/**
 * Replacement of an & that begins no entity, as in `name="a & b"`, which NCCL copies and saxes would read as the start of an
 * entity. A private-use character has the same length, so positions stay.
 */
const bareAmpersand = /&(?!#?[A-Za-z0-9]+;)/g;
const STAND_IN = '\uF026';

class Reader {
  readonly #text: string;
  readonly #fileName: string | undefined;
  readonly #parser = new SaxesParser();
  readonly #notes = new NoteList();
  /** Elements that are open, the innermost last. */
  readonly #open: XmlElement[] = [];
  #lastClosed: XmlElement | undefined;
  #root: XmlElement | undefined;
  /** The first open element that NCCL skips, with everything below it. */
  #skippedBelow: XmlElement | undefined;
  #attributes: [string, string][] = [];
  /** Place where the current text began: after the last tag or comment. */
  #markupEnd = 0;
  #parts = 0;
  #knownElements = 0;
  /** The line of the last position, as a start for the next one: positions ascend. */
  readonly #lastLine = { line: 1, start: 0, end: -1 };

  constructor(text: string, fileName: string | undefined) {
    this.#text = text;
    this.#fileName = fileName;
  }

  read(): ParsedXml {
    if (this.#text.length > xmlLimits.length) {
      throw new InputError('TOO_LARGE', `the text has ${this.#text.length} characters; at most ${xmlLimits.length} are read`, {
        ...(this.#fileName === undefined ? {} : { file: this.#fileName }),
      });
    }
    if (this.#text.startsWith('\uFEFF')) this.#note(0, { effect: 'refuse', what: 'a byte order mark' });
    this.#listen();
    this.#parser.write(this.#text.replaceAll(bareAmpersand, STAND_IN)).close();
    if (this.#root === undefined)
      throw this.#error('SYNTAX', this.#text.trim() === '' ? 'the file is empty' : 'no element in it', this.#text.length);
    this.#noteSize(this.#root);
    return { root: this.#root, notes: this.#notes.list() };
  }

  #listen(): void {
    const parser = this.#parser;
    parser.on('error', (error) => {
      this.#fault(error.message);
    });
    parser.on('opentagstart', () => {
      this.#attributes = [];
      if (this.#open.length >= xmlLimits.depth) {
        throw this.#error('TOO_LARGE', `elements are nested more than ${xmlLimits.depth} deep`, this.#tagStart());
      }
    });
    parser.on('attribute', ({ name, value }) => {
      this.#countPart();
      this.#attributes.push([name, value.replaceAll(STAND_IN, '&')]);
    });
    parser.on('opentag', (tag) => {
      this.#openTag(tag);
    });
    parser.on('closetag', (tag) => {
      this.#closeTag(tag);
    });
    parser.on('text', (text) => {
      const trouble = textTrouble(text);
      if (trouble !== undefined) this.#note(this.#markupEnd, trouble);
    });
    parser.on('comment', (comment) => {
      const trouble = commentTrouble(comment);
      if (trouble !== undefined) this.#note(this.#text.lastIndexOf('<!--', parser.position - 3), trouble);
      this.#markupEnd = parser.position;
    });
    const foreign = (what: string) => () => {
      this.#note(this.#tagStart(), { effect: 'refuse', what });
      this.#markupEnd = parser.position;
    };
    parser.on('xmldecl', foreign('an XML declaration'));
    parser.on('doctype', foreign('a document type'));
    parser.on('processinginstruction', foreign('a processing instruction'));
    parser.on('cdata', foreign('a CDATA section'));
  }

  #openTag(tag: SaxesTagPlain): void {
    this.#countPart();
    const start = this.#tagStart();
    const place = this.#place(start);
    const parent = this.#open.at(-1);
    const element = createElement(tag.name, parent, [], place);
    for (const [name, value] of this.#attributes) {
      // The first of two counts, as in NCCL.
      if (element.attributes.has(name)) this.#notes.add('ignore', `a second attribute ${shorten(name)} in one element`, place);
      else element.attributes.set(name, value);
    }
    this.#root ??= element;
    this.#open.push(element);
    for (const trouble of startTagTroubles(this.#text.slice(start, this.#parser.position))) this.#note(start, trouble);
    this.#noteElement(element, parent);
    this.#markupEnd = this.#parser.position;
  }

  #closeTag(tag: SaxesTagPlain): void {
    const element = this.#open.pop();
    this.#lastClosed = element;
    if (element === this.#skippedBelow) this.#skippedBelow = undefined;
    if (tag.isSelfClosing) return;
    const start = this.#tagStart();
    const trouble = endTagTrouble(this.#text.slice(start, this.#parser.position));
    if (trouble !== undefined) this.#note(start, trouble);
  }

  #noteElement(element: XmlElement, parent: XmlElement | undefined): void {
    if (this.#skippedBelow !== undefined) return;
    const { name, attributes } = element;
    if (name.length > ncclLimits.valueLength)
      this.#notes.add('refuse', `a name of more than ${ncclLimits.valueLength} characters`, element);
    if (!isKnownElement(name, parent?.name)) {
      this.#skippedBelow = element;
      const where = parent === undefined ? 'as root' : `in <${parent.name}>`;
      this.#notes.add('ignore', `element <${shorten(name)}> ${where}, with all below it`, element, () =>
        didYouMean(shorten(name), parent === undefined ? rootNames : knownChildren(parent.name)),
      );
      return;
    }
    this.#knownElements++;
    const rootName = this.#root?.name ?? name;
    for (const [attribute, value] of attributes) {
      if (!isKnownAttribute(attribute, name, rootName)) {
        this.#notes.add('ignore', `attribute ${shorten(attribute)} of <${name}>`, element, () =>
          didYouMean(shorten(attribute), attributeNames(name, rootName)),
        );
      }
      if (value.length > ncclLimits.valueLength) {
        this.#notes.add(
          'refuse',
          `a value of more than ${ncclLimits.valueLength} characters (${attribute} of <${name}>)`,
          element,
        );
      }
    }
    if (attributes.size > ncclLimits.attributes) {
      this.#notes.add('ignore', `attributes of <${name}> after the ${ncclLimits.attributes}th`, element);
    }
    if (parent !== undefined && parent.children.length === ncclLimits.children + 1) {
      this.#notes.add('refuse', `more than ${ncclLimits.children} elements in <${parent.name}>`, element);
    }
    if (parent === undefined && attributes.get('version') !== '1') {
      this.#notes.add('refuse', `<${name}> without version="1"`, element);
    }
  }

  #noteSize(root: XmlElement): void {
    const limit = root.name === 'graphs' ? ncclLimits.elements.graphs : ncclLimits.elements.system;
    if (this.#knownElements > limit) this.#notes.add('refuse', `more than ${limit} elements in one file`, root);
  }

  /** A fault that saxes found: some are harmless, the others end the reading. */
  #fault(message: string): void {
    // saxes puts line and column before its message; ours are counted from 1.
    const what = message.replace(/^\d+:\d+: /, '');
    if (tolerated.has(what) || what.startsWith('duplicate attribute')) return;
    const position = this.#parser.position;
    const open = this.#open.at(-1);
    if (what.startsWith('unclosed tag') || what === 'unexpected end.') {
      const inside = open === undefined ? '' : ` inside ${describeElement(open)}`;
      throw this.#error('SYNTAX', `the file ends${inside}; was it cut?`, this.#text.length);
    }
    if (what === 'document must contain a root element.') {
      throw this.#error('SYNTAX', this.#text.trim() === '' ? 'the file is empty' : 'no element in it', this.#text.length);
    }
    if (what === 'documents may contain only one root.') {
      throw this.#error('SYNTAX', 'a second root element; a file holds one <system> or <graphs>', this.#tagStart());
    }
    if (what === 'unexpected close tag.' || what.startsWith('unmatched closing tag')) {
      const tag = this.#text.slice(this.#tagStart(), Math.min(position, this.#tagStart() + 60)).replaceAll(/\s/g, ' ');
      const last = this.#lastClosed === undefined ? '' : `; ${describeElement(this.#lastClosed)} is open`;
      throw this.#error('SYNTAX', `${tag} closes nothing${last}`, this.#tagStart());
    }
    const place = open === undefined ? '' : `, in ${describeElement(open)}`;
    throw this.#error('SYNTAX', `not XML: ${what.replace(/\.$/, '')}${place}`, Math.max(0, position - 1));
  }

  #countPart(): void {
    if (++this.#parts > xmlLimits.parts) {
      throw this.#error('TOO_LARGE', `more than ${xmlLimits.parts} elements and attributes`, this.#parser.position);
    }
  }

  /** Place where the tag begins that saxes has just read. */
  #tagStart(): number {
    return Math.max(0, this.#text.lastIndexOf('<', this.#parser.position - 1));
  }

  #note(position: number, trouble: LexicalTrouble): void {
    this.#notes.add(trouble.effect, trouble.what, this.#place(position));
  }

  /** Line and column of a position in the text, both 1-based. */
  #place(position: number): { line: number; column: number } {
    const last = this.#lastLine;
    if (last.end < 0 || position < last.start) {
      last.line = 1;
      last.start = 0;
      last.end = this.#lineEnd(0);
    }
    while (last.end < position) {
      last.line++;
      last.start = last.end + 1;
      last.end = this.#lineEnd(last.start);
    }
    return { line: last.line, column: position - last.start + 1 };
  }

  #lineEnd(start: number): number {
    const end = this.#text.indexOf('\n', start);
    return end < 0 ? this.#text.length : end;
  }

  #error(code: ErrorCode, message: string, position: number): InputError {
    const place = this.#place(position);
    return new InputError(code, message, {
      ...(this.#fileName === undefined ? {} : { file: this.#fileName }),
      ...place,
      ncclResult: ncclResults.InternalError,
    });
  }
}
