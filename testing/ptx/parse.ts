// Reads the text of PTX modules: entries with parameters, registers, shared variables, labels and instructions. It shares
// nothing with the builder that wrote them, and refuses what it does not know.

/** Text that is no PTX, or more of it than these files know. */
export class PtxError extends Error {
  override name = 'PtxError';
}

/** An instruction as it stands: `@!%p1 bra L2`, without its semicolon. */
export interface Statement {
  readonly text: string;
  /** Register that must hold, or must not. */
  readonly guard: { readonly register: string; readonly wanted: boolean } | undefined;
  readonly mnemonic: string;
  /** Operands; braces and brackets stay. */
  readonly operands: readonly string[];
}

export interface Variable {
  readonly offset: number;
  readonly bytes: number;
}

/** Bits of a register; 1 for predicates. */
export type Width = 1 | 16 | 32 | 64;

export interface Kernel {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, Variable>;
  readonly parameterBytes: number;
  readonly shared: ReadonlyMap<string, Variable>;
  readonly sharedBytes: number;
  /** Number and width of each register. */
  readonly registers: ReadonlyMap<string, { readonly index: number; readonly width: Width }>;
  readonly code: readonly Statement[];
  /** Place in the code of each label. */
  readonly labels: ReadonlyMap<string, number>;
}

const typeBits: ReadonlyMap<string, number> = new Map([
  ['pred', 1],
  ...['b', 'u', 's'].flatMap((sign) => [8, 16, 32, 64].map((bits) => [`${sign}${bits}`, bits] as const)),
  ['f16', 16],
  ['f32', 32],
  ['f64', 64],
]);

/** The kernels of a module by name. */
export function parseModule(text: string): Map<string, Kernel> {
  const source = text.replace(/\/\*[\s\S]*?\*\//g, ' ').replace(/\/\/[^\n]*/g, '');
  const header = /^\s*\.version [\d.]+\s+\.target sm_\d+\w*(?:, texmode_independent)?\s+\.address_size 64\s/.exec(source);
  if (header === null) throw new PtxError('a module begins with .version, .target and .address_size 64');
  const kernels = new Map<string, Kernel>();
  const entry = /\s*(?:\.visible )?\.entry ([\w$]+)\(([^)]*)\)\s*\{([^]*?)\n\}\s*/y;
  let at = header[0].length;
  for (;;) {
    entry.lastIndex = at;
    const match = entry.exec(source);
    if (match === null) break;
    const [whole, name = '', parameters = '', body = ''] = match;
    kernels.set(name, parseKernel(name, parameters, body));
    at += whole.length;
  }
  if (source.slice(at).trim() !== '') throw new PtxError(`not understood: ${source.slice(at).trim().slice(0, 80)}`);
  return kernels;
}

function parseKernel(name: string, parameterText: string, body: string): Kernel {
  const parameters = new Layout();
  for (const declaration of split(parameterText)) parameters.add(declaration, 'param');
  const shared = new Layout();
  const registers = new Map<string, { index: number; width: Width }>();
  const code: Statement[] = [];
  const labels = new Map<string, number>();
  for (const piece of body.replace(/^\s*([\w$]+):/gm, '$1:;').split(';')) {
    const text = piece.trim().replace(/\s+/g, ' ');
    // Advice on loops changes no result.
    if (text === '' || text === '.pragma "nounroll"') continue;
    if (text.endsWith(':')) labels.set(text.slice(0, -1), code.length);
    else if (text.startsWith('.reg ')) declareRegisters(text, registers);
    else if (text.startsWith('.shared ')) shared.add(text, 'shared');
    else code.push(parseStatement(text));
  }
  return {
    name,
    parameters: parameters.variables,
    parameterBytes: parameters.bytes,
    shared: shared.variables,
    sharedBytes: shared.bytes,
    registers,
    code,
    labels,
  };
}

/** Places of variables of a state space, in the order of their declarations. */
class Layout {
  readonly variables = new Map<string, Variable>();
  bytes = 0;

  add(declaration: string, space: string): void {
    // An alignment after the type is that of what a pointer points to.
    const match = /^\.(\w+) (?:\.align (\d+) )?\.(\w+) (?:\.ptr \.global \.align \d+ )?([\w$]+)(?:\[(\d+)\])?$/.exec(declaration);
    const elementBits = typeBits.get(match?.[3] ?? '');
    if (match?.[1] !== space || elementBits === undefined) throw new PtxError(`not understood: ${declaration}`);
    const align = Number(match[2] ?? elementBits / 8);
    const bytes = (elementBits / 8) * Number(match[5] ?? 1);
    const offset = Math.ceil(this.bytes / align) * align;
    this.variables.set(match[4] ?? '', { offset, bytes });
    this.bytes = offset + bytes;
  }
}

function declareRegisters(text: string, registers: Map<string, { index: number; width: Width }>): void {
  const match = /^\.reg \.(\w+) (%\w+)<(\d+)>$/.exec(text);
  const width = typeBits.get(match?.[1] ?? '');
  if (match === null || width === undefined || width === 8) throw new PtxError(`not understood: ${text}`);
  for (let i = 0; i < Number(match[3]); i++) registers.set(`${match[2]}${i}`, { index: registers.size, width: width as Width });
}

function parseStatement(text: string): Statement {
  const match = /^(?:@(!?)(%\w+) )?([a-z][\w.:]*)(?: (.*))?$/i.exec(text);
  if (match === null) throw new PtxError(`not understood: ${text}`);
  const [, not, register, mnemonic = '', operands = ''] = match;
  const guard = register === undefined ? undefined : { register, wanted: not !== '!' };
  return { text, guard, mnemonic, operands: split(operands) };
}

/** Parts between commas that are outside of braces and brackets. */
export function split(text: string): string[] {
  return (text.match(/(?:\{[^}]*\}|\[[^\]]*\]|[^,{[])+/g) ?? []).map((part) => part.trim()).filter((part) => part !== '');
}
