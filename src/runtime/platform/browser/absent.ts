/**
 * A function or class of Node.js that a page does not have. Nothing that a page offers calls it or constructs it, and nothing is
 * an instance of it.
 */
export function absent(what: string): () => never {
  // An arrow function has no prototype, so `instanceof` would throw.
  return function () {
    throw new Error(`${what} needs Node.js: a page has neither files, processes nor sockets`);
  };
}
