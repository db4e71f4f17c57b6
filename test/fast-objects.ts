// For the plugin of test/fast-imports.ts, in each worker.

/** Reads a property by way of a prototype, which V8 makes fast when the read is one that it has seen before. */
function readThrough(prototype: object): unknown {
  function Inheriting(this: object): void {}
  Inheriting.prototype = prototype;
  const made = new (Inheriting as unknown as new () => Record<string, unknown>)();
  return made['anything'];
}

const scope = globalThis as { makeFast?: (exports: object) => void };
if (scope.makeFast === undefined) {
  for (let i = 0; i < 1000; i++) readThrough(Object.create(null) as object);
  scope.makeFast = (exports) => {
    readThrough(exports);
    readThrough(exports);
  };
}
