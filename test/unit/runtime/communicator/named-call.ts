import { CheckedCall } from '../../../../src/runtime/communicator/checked-call.js';

/** A checked call that has the name of the method that was called last, as a communicator gives it. */
export function namedCall(rank: number, nRanks: number): CheckedCall {
  return new Proxy(new CheckedCall(rank, nRanks), {
    get(call, key) {
      const value: unknown = Reflect.get(call, key, call);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        call.name = String(key);
        return Reflect.apply(value, call, args);
      };
    },
  });
}
