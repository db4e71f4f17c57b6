/** Errors that all ranks of `refusals` get of any device, with their numbers of ranks; each leaves the device usable. */
export function refusalsOf(nRanks: number): Readonly<Record<string, string>> {
  return {
    'no class': 'ARGUMENT_TYPE: wrap: pass a class of typed arrays, as in alloc(Float32Array, 1024), not "float32"',
    'odd elements':
      "ARGUMENT_RANGE: wrap: the buffer's 12 bytes are no whole number of elements of Float64Array, of 8 bytes each",
    'long slice': "ARGUMENT_RANGE: slice: start and end are whole numbers from 0 to 4, the array's length, not 2 and 5",
    freed: 'BUFFER_DETACHED: allReduce: the array was freed; pass one that was not',
    'host array':
      'ARGUMENT_TYPE: allReduce: pass an array of this device, as alloc and wrap make it, not an object of class Float32Array',
    operator:
      'UNKNOWN_NAME: allReduce: there is no reduction operator "add"; did you mean sum?; use one of sum, prod, min, max, avg, band, bor, bxor, land, lor, minloc, maxloc or { premulSum: scalar }',
    misplaced:
      "ARGUMENT_TYPE: allReduce: 'max' is where the output belongs; pass the operator so: allReduce(x, undefined, 'max')",
    type: "ARGUMENT_TYPE: allReduce: a Uint16Array holds float16 or bfloat16, and nothing says which; pass { type: 'float16' } or { type: 'bfloat16' } as options",
    types: 'ARGUMENT_TYPE: allReduce: input is a Float32Array, output a Int32Array; both must have one type',
    root: `ROOT_RANGE: broadcast: root is 9, but ranks go from 0 to ${nRanks - 1}`,
    short: `BUFFER_SIZE: allGather: the output has 2 elements, but needs ${4 * nRanks}; pass a longer one`,
    overlap:
      "BUFFER_OVERLAP: allReduce: input and output overlap without being in place; pass the same array, this rank's part of it, or arrays apart",
    'no input': 'ARGUMENT_TYPE: allReduce: this rank has no input; pass an array of the device',
    'upload class': 'ARGUMENT_TYPE: upload: pass a Float32Array, not an object of class Float64Array',
    'upload length': 'BUFFER_SIZE: upload: the array of the host has 3 elements, that of the device 4; pass one of that length',
    peer: `ARGUMENT_RANGE: send: there is no rank 17; ranks go from 0 to ${nRanks - 1}`,
    'async group':
      'ARGUMENT_TYPE: group: pass a function that is neither async nor a generator and calls the operations without awaiting them, not an async one',
    group: 'BUFFER_DETACHED: allReduce: the array was freed; pass one that was not',
    option: 'UNKNOWN_NAME: allReduce: there is no option "typ"; did you mean type?; there are type, signal, timeoutMs, queued',
    'bits of floats':
      'ARGUMENT_TYPE: allReduce: band combines integers, not float32; pass an array of integers, such as an Int32Array',
    'half a pair':
      'BUFFER_SIZE: allReduce: minloc combines pairs, a value and its place, so 3 elements are one too few or too many',
    'no scalar': 'ARGUMENT_TYPE: premulSum takes a number, not "2"',
    'no unit': "ARGUMENT_RANGE: allReduce: the operator's unit is 0; pass a whole number of elements from 1 to 1048576",
    tag: 'ARGUMENT_RANGE: send: tag is a whole number from 0 to 16777215, not -1',
    'limit in a group': 'UNSUPPORTED: send: a call in a group has no signal or timeoutMs of its own; pass them to the group',
    'limit of a group': 'ARGUMENT_RANGE: group: timeoutMs is a number of milliseconds above 0, 24 days at most, not NaN',
    endless: 'ARGUMENT_RANGE: alloc: no memory has the bytes of 4503599627370496 elements of Float64Array',
    busy: 'ARGUMENT_TYPE: free: a call that uses the array is under way; await it first',
    after: 'done',
  };
}

/** Results of `others` on rank `rank`. */
export function othersOf(rank: number, nRanks: number): object {
  const left = (rank + nRanks - 1) % nRanks;
  const own = Array.from({ length: nRanks }, (_, i) => i).reduce((lower, higher) => lower * 10 + higher);
  const sum = (nRanks * (nRanks - 1)) / 2;
  return { received: left, grouped: [left, left, sum], own, limited: sum, order: [0, 1, 2, 3, 4, 5, 6, 7] };
}
