/** A function of Node.js that a page does not have. Nothing that a page offers calls it. */
export const absent = (what: string) => (): never => {
  throw new Error(`${what} needs Node.js: a page has neither files, processes nor sockets`);
};
