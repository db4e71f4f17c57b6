/**
 * The part of the WebAssembly API that tccl uses; TypeScript has it only in its DOM library, which a runtime of Node does
 * without.
 */
declare namespace WebAssembly {
  interface MemoryDescriptor {
    readonly initial: number;
    readonly maximum?: number;
    readonly shared?: boolean;
  }
  class Memory {
    constructor(descriptor: MemoryDescriptor);
    readonly buffer: ArrayBufferLike;
  }
  interface Module {
    readonly [Symbol.toStringTag]: 'WebAssembly.Module';
  }
  const Module: new (bytes: Uint8Array) => Module;
  interface Global {
    readonly value: unknown;
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>);
    readonly exports: Record<string, unknown>;
  }
}
