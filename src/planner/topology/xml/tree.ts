/**
 * The tree of a topology or graph XML, from parsing through trimming, merging and fusing to writing. Attributes keep the order in
 * which they were first set, children theirs.
 */
export interface XmlElement {
  readonly name: string;
  /** In order of first setting, which is the order in which NCCL writes them. */
  readonly attributes: Map<string, string>;
  readonly children: XmlElement[];
  /** 1-based place of the start tag in its text; 0 for an element without a text. */
  readonly line: number;
  /** 1-based; 0 for an element without a text. */
  readonly column: number;
  /** Undefined for the root and for a detached element. */
  parent: XmlElement | undefined;
}

/** A new element, added at the end of `parent`'s children if there is one. */
export function createElement(
  name: string,
  parent?: XmlElement,
  attributes: Iterable<readonly [string, string]> = [],
  place: { readonly line: number; readonly column: number } = { line: 0, column: 0 },
): XmlElement {
  const element: XmlElement = {
    name,
    attributes: new Map(attributes),
    children: [],
    line: place.line,
    column: place.column,
    parent,
  };
  parent?.children.push(element);
  return element;
}

/** The first child of that name. */
export function childNamed(element: XmlElement, name: string): XmlElement | undefined {
  return element.children.find((child) => child.name === name);
}

/** All children of that name, in order. */
export function childrenNamed(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child.name === name);
}

/** The first child of that name whose attribute has that value. */
export function childWith(element: XmlElement, name: string, attribute: string, value: string): XmlElement | undefined {
  return element.children.find((child) => child.name === name && child.attributes.get(attribute) === value);
}

/** The element and all below it, parents before children, in the order of the text. */
export function* descendants(element: XmlElement): Generator<XmlElement, void, undefined> {
  // A stack of its own, because the depth of a tree from a file is not limited.
  const stack = [element];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    yield next;
    for (let index = next.children.length - 1; index >= 0; index--) {
      const child = next.children[index];
      if (child !== undefined) stack.push(child);
    }
  }
}

/** Removes the element from its parent; it and its children stay a tree of their own. */
export function detach(element: XmlElement): void {
  const siblings = element.parent?.children;
  const index = siblings?.indexOf(element) ?? -1;
  if (index >= 0) siblings?.splice(index, 1);
  element.parent = undefined;
}

/** A copy with all children, attached at the end of `parent`'s children if there is one. Places are kept. */
export function cloneElement(element: XmlElement, parent?: XmlElement): XmlElement {
  const copy = createElement(element.name, undefined, element.attributes, element);
  for (const child of element.children) cloneElement(child, copy);
  // Last: the parent may be below the element that is copied.
  copy.parent = parent;
  parent?.children.push(copy);
  return copy;
}

/** `<pci busid="0000:1b:00.0">`: name of an element in messages. */
export function nameElement(element: XmlElement): string {
  const key = ['busid', 'numaid', 'dev', 'target', 'name'].find((name) => element.attributes.has(name));
  const detail = key === undefined ? '' : ` ${key}="${shorten(element.attributes.get(key) ?? '')}"`;
  return `<${shorten(element.name)}${detail}>`;
}

/** `<pci busid="0000:1b:00.0"> (line 12)`: its name and place. */
export function describeElement(element: XmlElement): string {
  return `${nameElement(element)}${element.line > 0 ? ` (line ${element.line})` : ''}`;
}

/** The beginning of a text from a file, for messages: a name may have a million characters. */
export function shorten(text: string): string {
  return text.length <= LONGEST_QUOTE ? text : `${text.slice(0, LONGEST_QUOTE)}…`;
}

const LONGEST_QUOTE = 60;
