// Writes the declarations of every public entry into api/, one file for each, in the order of their names and without comments:
// a change of them is a change that users see. `--check` only compares (test/thorough/package.test.ts, so CI).
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import ts from 'typescript';

const entries = Object.values(JSON.parse(readFileSync('package.json', 'utf8')).exports).flatMap(({ types }) => types ?? []);
const program = ts.createProgram(entries, { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, types: ['node'] });
const checker = program.getTypeChecker();
const printer = ts.createPrinter({ removeComments: true });

let differing = 0;
for (const entry of entries) {
  const name = entry === './dist/types/index.d.ts' ? 'tccl' : basename(entry, '.d.ts');
  const file = `api/${name}.d.ts.txt`;
  const text = reportOf(program.getSourceFile(entry));
  if (!process.argv.includes('--check')) {
    mkdirSync('api', { recursive: true });
    writeFileSync(file, text);
  } else if (readOr(file) !== text) {
    differing++;
    console.error(`${file}: the public declarations have changed: npm run api, and a line in CHANGELOG.md`);
  }
}
process.exitCode = differing > 0 ? 1 : 0;

function reportOf(source) {
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(source));
  const shown = new Map(exported.map((symbol) => [symbol.name, isAlias(symbol) ? checker.getAliasedSymbol(symbol) : symbol]));
  for (const [, symbol] of shown) for (const base of basesOf(symbol)) if (!shown.has(base.name)) shown.set(base.name, base);
  const names = [...shown.keys()].sort((one, other) => (one < other ? -1 : 1));
  return names.map((name) => `// ${name}\n${(shown.get(name)?.declarations ?? []).map(textOf).join('\n')}\n`).join('\n');
}

/** Classes and interfaces of ours that a symbol extends: their members are its own, exported or not. */
function basesOf(symbol) {
  const types = (symbol.declarations ?? []).flatMap(({ heritageClauses = [] }) => heritageClauses.flatMap(({ types }) => types));
  return types.flatMap(({ expression }) => {
    const found = checker.getSymbolAtLocation(expression);
    const base = found !== undefined && isAlias(found) ? checker.getAliasedSymbol(found) : found;
    const isOurs = base?.declarations?.some((one) => !one.getSourceFile().fileName.includes('/node_modules/'));
    return isOurs ? [base] : [];
  });
}

function isAlias({ flags }) {
  return (flags & ts.SymbolFlags.Alias) !== 0;
}

/** A declaration without its private members, whose names nobody can use. */
function textOf(declaration) {
  const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  const isPublic = (member) =>
    !(member.name !== undefined && ts.isPrivateIdentifier(member.name)) &&
    !(ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private);
  const shown = ts.isClassDeclaration(node)
    ? ts.factory.updateClassDeclaration(
        node,
        node.modifiers,
        node.name,
        node.typeParameters,
        node.heritageClauses,
        node.members.filter(isPublic),
      )
    : node;
  return printer.printNode(ts.EmitHint.Unspecified, shown, node.getSourceFile());
}

function readOr(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
