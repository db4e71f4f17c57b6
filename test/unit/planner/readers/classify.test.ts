import { describe, expect, it } from 'vitest';
import { classify } from '../../../../src/planner/readers/classify.js';

describe('a file', () => {
  const kind = (text: string) => classify(new TextEncoder().encode(text));

  it('is recognised by its first bytes', () => {
    expect(kind('<?xml version="1.0"?>\n<system version="1">')).toBe('xml');
    expect(kind('<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">')).toBe('text');
    expect(kind('\t\u001b[4mGPU0\tGPU1\tCPU Affinity\u001b[0m\nGPU0\t X \tNV18\t0-23')).toBe('text');
    expect(kind('GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s')).toBe('text');
    expect(kind("CA 'mlx5_0'\n\tCA type: MT4129")).toBe('text');
    expect(kind('Job summary\n===========')).toBe('text');
    expect(kind('{\n "nccl_version": "2.28.3"')).toBe('json');
    expect(kind('{"log":"a"}\n{"log":"b"}')).toBe('text');
    expect(kind('node1:1:2 [0] NCCL INFO x')).toBe('text');
    expect(classify(Uint8Array.of(0x80, 2, 0x7d))).toBe('pickle');
    expect(classify(Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0))).toBe('binary');
  });
});
