export { deserialize, serialize } from './clone.js';

/** Browsers do not give out their serializer: objects go by clone.ts. */
export const Serializer = class {
  readonly missing = noSerializer();
};
export const Deserializer = Serializer;

function noSerializer(): never {
  throw new Error('a browser has no serializer');
}

/** The collector of a browser cannot be called: arrays are freed by comm.free, `using`, or when it runs by itself. */
export const setFlagsFromString = (): void => undefined;
export const runInNewContext = (): undefined => undefined;
