import { describe, expect, it } from 'vitest';
import { exampleState, fragmentOf, stateOf, type StudioState, variablesOf } from '../../../src/studio/state.js';

describe('the fragment of the address', () => {
  it('has the whole state', () => {
    const state: StudioState = {
      machine: 'dgx-h100',
      file: undefined,
      fileSet: ['a.txt', 'b.txt'],
      nodes: 4,
      nccl: '2.27.7',
      env: { NCCL_ALGO: 'Ring,Tree', NCCL_PROTO: '^LL128', NCCL_TOPO_FILE: 'a=b&c#d' },
      gpusOff: [3],
      nicsOff: ['mlx5_1', 'a b'],
      edits: [
        { what: 'half-lanes', device: 'gpu3' },
        { what: 'another', device: 'a:b c' },
      ],
      edited: 'first',
      hardware: '8 x H100 SXM, 8 x 400G NIC',
      others: 'dgx-a100:2, b.xml',
      windows: 'send',
      view: 'matrix',
      graph: 'tree',
      collective: 'AllGather',
      bytes: 4096,
      against: 'dgx-a100:2',
      step: 3,
      channel: 2,
      selected: 'NET/0-1',
      ask: 'why 16 channels?',
    };
    expect(stateOf(`#${fragmentOf(state)}`)).toEqual(state);
    const ofFile = { ...state, machine: exampleState.machine, file: 'mine & yours.xml' };
    expect(stateOf(fragmentOf(ofFile))).toEqual(ofFile);
  });

  it('is the example where there is none, and has defaults for what makes no sense', () => {
    expect(stateOf('')).toEqual(exampleState);
    expect(stateOf('#nodes=-3&view=none&channel=x&env=NCCL&gpu-off=a')).toEqual({ ...exampleState, nodes: 1 });
    expect(stateOf('#nodes=100000').nodes).toBe(1);
  });
});

it('variables come one by one or several at a time; values may have blanks', () => {
  expect(variablesOf('NCCL_ALGO=Ring NCCL_PROTO=LL\nNCCL_DEBUG_FILE=a b')).toEqual({
    NCCL_ALGO: 'Ring',
    NCCL_PROTO: 'LL',
    NCCL_DEBUG_FILE: 'a b',
  });
  expect(() => variablesOf('NCCL_ALGO')).toThrow("'NCCL_ALGO' sets nothing: write NAME=VALUE");
});
