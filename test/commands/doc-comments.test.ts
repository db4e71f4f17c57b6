import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';
import * as planner from '../../src/planner/index.js';

const declarations = (name: string): string => fileURLToPath(new URL(`../../dist/${name}.d.ts`, import.meta.url));

interface Exports {
  readonly checker: ts.TypeChecker;
  readonly symbols: readonly ts.Symbol[];
}

const known = new Map<string, Exports>();

/** The exports of a module, with their type checker, compiled once. */
function exportsOf(file: string): Exports {
  const exported = known.get(file) ?? compiledExports(file);
  known.set(file, exported);
  return exported;
}

function compiledExports(file: string): Exports {
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const module = source === undefined ? undefined : checker.getSymbolAtLocation(source);
  if (module === undefined) throw new Error(`${file} is no module`);
  const symbols = checker
    .getExportsOfModule(module)
    .map((symbol) => ((symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol)));
  return { checker, symbols };
}

it.each([
  ['index', 45],
  ['planner/index', 200],
])('every name that dist/%s exports has a doc comment', (name, least) => {
  const { checker, symbols } = exportsOf(declarations(name));
  expect(symbols.length).toBeGreaterThan(least);
  expect(
    symbols.filter((symbol) => symbol.getDocumentationComment(checker).length === 0).map((symbol) => symbol.getName()),
  ).toEqual([]);
});

it('every member of what the runtime exports has a doc comment', () => {
  const { checker, symbols } = exportsOf(declarations('index'));
  const without = symbols.flatMap((symbol) =>
    [...(symbol.members?.values() ?? [])]
      .filter(
        (member) =>
          (member.flags & (ts.SymbolFlags.Property | ts.SymbolFlags.Method | ts.SymbolFlags.Accessor)) !== 0 &&
          /^[a-z]/i.test(member.getName()),
      )
      .filter((member) =>
        member
          .getDeclarations()
          ?.every((one) => (ts.getCombinedModifierFlags(one) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) === 0),
      )
      .filter((member) => member.getDocumentationComment(checker).length === 0)
      .map((member) => `${symbol.getName()}.${member.getName()}`),
  );
  expect(without).toEqual([]);
});

it('every function and value of tccl/planner is on its reference page', () => {
  const { symbols } = exportsOf(declarations('planner/index'));
  const page = readFileSync(fileURLToPath(new URL('../../docs/reference/planner.md', import.meta.url)), 'utf8');
  const values = symbols.filter(({ flags }) => (flags & ts.SymbolFlags.Value) !== 0).map((symbol) => symbol.getName());
  // Users receive instances of some classes but never construct them, so only their types are exported.
  const exported = values.filter((name) => name in planner);
  expect(exported.length).toBeGreaterThan(100);
  expect(exported.filter((name) => !new RegExp(`\`${name}[(\`]`).test(page))).toEqual([]);
});
