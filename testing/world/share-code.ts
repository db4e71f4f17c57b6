import ts from 'typescript';

/** Values that differ between ranks, as parameters of the code. */
const PARAMETERS = ['worldPlatform', 'process', 'require', 'WebAssembly', 'Atomics', 'FinalizationRegistry'] as const;

/** The code of all ranks, with the variables of one. */
export interface SharedCode<Exports> {
  readonly exports: Exports;
  /** Gives the rank that runs next variables as they are at the beginning. */
  readonly make: (...parameters: readonly unknown[]) => void;
  /** Returns the variables of the rank that ran, which `enter` takes back. */
  readonly leave: () => unknown;
  readonly enter: (variables: unknown) => void;
}

/**
 * Turns a bundle into a function whose ranks share functions, classes and tables, and have their own variables of modules.
 * With classes of their own, ranks would spend most of their time in V8's lookups of properties, which it learns for each class.
 *
 * The function takes the parameters, `exports` and `__filename`, and returns a {@link SharedCode} for the first rank.
 */
export function shareCode(code: string): string {
  const file = ts.createSourceFile('rank.js', code, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const names: string[] = [];
  const remakes: string[] = [];
  const parts: string[] = [];
  let copied = 0;
  for (const statement of file.statements) {
    if (isAssignment(statement) && names.includes(statement.expression.left.getText(file))) remakes.push(statement.getText(file));
    if (!ts.isVariableStatement(statement)) continue;
    const { declarations, flags } = statement.declarationList;
    const isConst = (flags & ts.NodeFlags.Const) !== 0;
    for (const { name, initializer } of declarations) {
      const isCode = initializer !== undefined && (ts.isFunctionLike(initializer) || ts.isClassLike(initializer));
      const isOwn = !isCode && (initializer === undefined || !isConst || isMadeAnew(initializer, names));
      if (!isOwn) continue;
      const own = ts.isIdentifier(name)
        ? [name]
        : name.elements.flatMap((each) => (ts.isBindingElement(each) ? [each.name] : []));
      names.push(...own.map((each) => each.getText(file)));
      remakes.push(
        initializer === undefined
          ? `${name.getText(file)} = $first[${names.length - 1}];`
          : `(${name.getText(file)} = ${initializer.getText(file)});`,
      );
    }
    if (!isConst) continue;
    const at = statement.declarationList.getStart(file);
    parts.push(code.slice(copied, at), 'let  ');
    copied = at + 'const'.length;
  }
  parts.push(code.slice(copied));
  const all = [...PARAMETERS, ...names].join(', ');
  return `(function (${PARAMETERS.join(', ')}, exports, __filename) {${parts.join('')}
let $first = [${names.join(', ')}];
return {
  exports,
  make(...$parameters) { [${PARAMETERS.join(', ')}] = $parameters; ${remakes.join('\n')} },
  leave() { return [${all}]; },
  enter($variables) { [${all}] = $variables; },
};})`;
}

function isAssignment(
  statement: ts.Statement,
): statement is ts.ExpressionStatement & { readonly expression: ts.BinaryExpression } {
  return (
    ts.isExpressionStatement(statement) &&
    ts.isBinaryExpression(statement.expression) &&
    statement.expression.operatorToken.kind === ts.SyntaxKind.EqualsToken
  );
}

/** True for a value that a rank changes, or that is made of what differs between ranks, such as these names. */
function isMadeAnew(value: ts.Node, own: readonly string[]): boolean {
  if (ts.isFunctionLike(value) || ts.isClassLike(value)) return false;
  if (ts.isNewExpression(value) && (value.arguments?.length ?? 0) === 0) return true;
  if (ts.isArrayLiteralExpression(value) && value.elements.length === 0) return true;
  if (ts.isObjectLiteralExpression(value) && value.properties.length === 0) return true;
  if (ts.isIdentifier(value)) return (PARAMETERS as readonly string[]).includes(value.text) || own.includes(value.text);
  return ts.forEachChild(value, (child) => isMadeAnew(child, own)) === true;
}
