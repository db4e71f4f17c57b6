import tseslint from 'typescript-eslint';

/**
 * The rooms of the house, top to bottom: a room may import from rooms below it, never from one above.
 * docs/architecture.md tells what lives in each.
 */
const floors = [
  ['cli'],
  ['studio', 'perf'],
  ['communicator'],
  ['collectives'],
  ['transport'],
  ['device'],
  ['launch'],
  ['bootstrap'],
  ['detect'],
  ['plan'],
  ['tuning'],
  ['graph'],
  ['topology'],
];

/** One rule a room: none of the rooms on the floors above, nor its neighbours on the same floor. */
const roomRules = floors.flatMap((rooms, floor) =>
  rooms.map((room) => {
    const forbidden = floors.slice(0, floor + 1).flat().filter((other) => other !== room);
    return {
      files: [`src/${room}/**/*.ts`],
      rules: {
        'no-restricted-imports': ['error', {
          patterns: [
            ...(forbidden.length === 0 ? [] : [{
              regex: `^(\\.\\./)+(${forbidden.join('|')})/`,
              message: `${room}/ may only import from rooms below it (see docs/architecture.md).`,
            }]),
            { regex: '^(\\.\\./)+index\\.js$', message: 'Import from the room itself, not from the package entry.' },
          ],
        }],
      },
    };
  }),
);

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', 'src/device/kernels/assembly/', 'bench/peers/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { project: ['tsconfig.json', 'tsconfig.planner.json', 'tsconfig.test.json'], tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      '@typescript-eslint/no-unnecessary-boolean-literal-compare': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/unified-signatures': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      'eqeqeq': 'error',
      'no-console': 'error',
    },
  },
  { files: ['src/cli/**/*.ts', 'examples/**/*', 'bench/**/*', 'test/**/*'], rules: { 'no-console': 'off' } },
  { files: ['test/**/*.ts'], rules: { '@typescript-eslint/no-non-null-assertion': 'off' } },
  ...roomRules,
);
