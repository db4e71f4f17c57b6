import eslint from '@eslint/js';
import globals from 'globals';
import tseslint from 'typescript-eslint';
import { pageFiles } from './scripts/page-files.mjs';

/** Rooms that run a call, which the rooms above may import. */
const ofCalls = [
  'messages',
  'algorithms',
  'algorithms/memory',
  'algorithms/connections',
  'transport',
  'launch',
  'bootstrap',
  'progress',
  'device',
];

/**
 * The rooms of each wing, and the rooms of all wings that each may import. Files beside the rooms (errors.ts, parameters.ts …)
 * are for all. A room in a room (algorithms/memory) may import the files beside it; others need to list it. docs/architecture.md
 * tells what lives in each.
 */
const wings = {
  planner: {
    versions: [],
    topology: ['versions'],
    graph: ['topology', 'versions'],
    tuning: ['graph', 'topology', 'versions'],
    schedule: ['tuning', 'graph', 'versions'],
    simulate: ['schedule', 'tuning', 'graph', 'topology', 'versions'],
    plan: ['simulate', 'schedule', 'tuning', 'graph', 'topology', 'versions'],
    readers: [],
    evidence: ['readers', 'topology'],
    log: ['readers', 'plan', 'tuning', 'graph', 'topology', 'versions'],
    expect: ['log', 'evidence', 'readers', 'plan', 'simulate', 'schedule', 'tuning', 'graph', 'topology', 'versions'],
    replay: ['readers', 'plan', 'simulate', 'schedule', 'tuning', 'graph', 'topology', 'versions'],
    explain: ['expect', 'evidence', 'plan', 'simulate', 'schedule', 'tuning', 'graph', 'topology', 'versions'],
  },
  // Every room of the runtime may import platform and failure.
  runtime: {
    platform: [],
    failure: [],
    detect: ['planner/topology'],
    device: ['detect'],
    progress: ['device'],
    bootstrap: ['progress', 'device'],
    launch: ['bootstrap', 'progress', 'detect'],
    transport: ['bootstrap', 'device'],
    algorithms: ['transport', 'launch', 'bootstrap', 'progress', 'device', 'planner/schedule'],
    'algorithms/memory': ['algorithms', 'launch', 'bootstrap', 'progress', 'device'],
    'algorithms/connections': [
      'algorithms',
      'aggregator',
      'transport',
      'bootstrap',
      'progress',
      'device',
      'planner/graph',
      'planner/schedule',
    ],
    messages: ['algorithms', 'transport', 'bootstrap', 'progress', 'device'],
    objects: ['messages', 'algorithms', 'bootstrap', 'device'],
    operators: ['algorithms', 'device'],
    aggregator: ['algorithms', 'algorithms/connections', 'transport', 'bootstrap', 'progress', 'device'],
    windows: ['messages', 'algorithms', 'transport', 'bootstrap', 'progress', 'device'],
    programs: [
      'messages',
      'algorithms',
      'algorithms/connections',
      'transport',
      'bootstrap',
      'progress',
      'device',
      'planner/schedule',
    ],
    threads: ['aggregator', 'windows', ...ofCalls],
    observe: ['algorithms', 'algorithms/connections', 'bootstrap', 'device', 'planner/graph'],
    pool: ['init', 'communicator', 'launch', 'bootstrap', 'device'],
    page: ['init', 'communicator', 'resources', 'pool', 'launch', 'bootstrap', 'progress', 'device'],
    channels: [
      'observe',
      'algorithms',
      'algorithms/connections',
      'bootstrap',
      'detect',
      'planner/plan',
      'planner/schedule',
      'planner/graph',
      'planner/topology',
    ],
    init: [
      'communicator',
      'resources',
      'channels',
      'observe',
      'algorithms',
      'transport',
      'launch',
      'bootstrap',
      'progress',
      'device',
    ],
    communicator: ['resources', 'channels', 'objects', 'operators', 'windows', 'programs', ...ofCalls, 'planner/schedule'],
    resources: ['aggregator', 'channels', 'observe', 'threads', ...ofCalls, 'detect', 'planner/schedule'],
  },
};

/** The runtime takes what differs between platforms from one room. */
const ofThePlatform = [{ regex: '^node:', message: 'Take it from src/runtime/platform, as #platform/NAME.' }];

/** Pattern of the paths by which modules of a room name another room of their wing. */
const waysTo = (other, room) => {
  const [outer, inner] = other.split('/');
  const [outerOwn, innerOwn] = room.split('/');
  return inner === undefined || outer !== outerOwn
    ? `((\\.\\./)+|#seam/)${other}/`
    : `${innerOwn === undefined ? '\\.' : '\\.\\.'}/${inner}/`;
};

/** The rule of a room: of its own wing the listed rooms; of the planner the listed rooms; nothing of what stands above. */
const roomRules = Object.entries(wings).flatMap(([wing, rooms]) =>
  Object.entries(rooms).map(([room, allowed]) => {
    const forbidden = Object.keys(rooms).filter(
      (other) => other !== room && other !== 'platform' && other !== 'failure' && !allowed.includes(other),
    );
    const ofPlanner = allowed.flatMap((name) => (name.startsWith('planner/') ? [name.slice('planner/'.length)] : []));
    const message = `${wing}/${room} may import only: ${allowed.join(', ') || 'no other room'} (see docs/architecture.md).`;
    const above = wing === 'planner' ? '(view|runtime|cli|perf|studio)/' : '(view|cli|perf|studio)/';
    return {
      files: [`src/${wing}/${room}/**/*.ts`],
      rules: {
        'no-restricted-imports': [
          'error',
          {
            patterns: [
              ...(forbidden.length === 0
                ? []
                : [{ regex: `^(${forbidden.map((other) => waysTo(other, room)).join('|')})`, message }]),
              ...(wing === 'planner'
                ? []
                : [
                    {
                      regex: `^(\\.\\./)+planner/${ofPlanner.length === 0 ? '' : `(?!(${ofPlanner.join('|')})/)[^/]+/`}`,
                      message,
                    },
                  ]),
              { regex: `^(\\.\\./)+${above}`, message },
              ...(wing === 'runtime' && room !== 'platform' ? ofThePlatform : []),
              { regex: '^(\\.\\./)+index\\.js$', message: 'Import from the room itself, not from the package entry.' },
            ],
          },
        ],
      },
    };
  }),
);

const ofTheMachine = ['performance', 'Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate'].map(
  (name) => ({ name, message: 'Take it from src/runtime/platform/platform.ts.' }),
);

/** Globals of the platform: only its own room may use them (docs/architecture.md#platform). */
const platformRule = {
  files: ['src/runtime/**/*.ts'],
  ignores: ['src/runtime/platform/**', 'src/runtime/device/kernels/assembly/**'],
  rules: {
    'no-restricted-globals': ['error', ...ofTheMachine],
    'no-restricted-properties': [
      'error',
      { object: 'Math', property: 'random', message: 'Take it from src/runtime/platform/platform.ts.' },
      { object: 'process', property: 'hrtime', message: 'Take hostClockNs from src/runtime/platform/platform.ts.' },
    ],
  },
};

const ofPages = pageFiles(import.meta.dirname).filter((file) => !file.startsWith('src/runtime/platform/'));

const ofNode = [
  { name: 'process', message: 'Pages load this module: take it from #platform/process.' },
  { name: 'Buffer', message: 'Pages load this module: take it from #platform/bytes.' },
];

/** A page has neither globals nor modules of Node.js. */
const pageRules = [
  {
    files: ofPages.filter((file) => file.startsWith('src/runtime/')),
    rules: { 'no-restricted-globals': ['error', ...ofTheMachine, ...ofNode] },
  },
  { files: ofPages.filter((file) => !file.startsWith('src/runtime/')), rules: { 'no-restricted-globals': ['error', ...ofNode] } },
  {
    files: ofPages.filter((file) => /^src\/([^/]+|(browser|devices|webgpu|ddp)\/.*)\.ts$/.test(file)),
    rules: { 'no-restricted-imports': ['error', { patterns: ofThePlatform }] },
  },
];

const filesBesideRooms = {
  files: ['src/runtime/*.ts'],
  rules: { 'no-restricted-imports': ['error', { patterns: ofThePlatform }] },
};

/** Views are pure: they draw what the planner decided, for the command line and the studio. */
const viewRule = {
  files: ['src/view/**/*.ts'],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: '^(\\.\\./)+(runtime|cli|perf|studio|ddp)/',
            message: 'view may import only the planner (see docs/architecture.md).',
          },
          { regex: '^(\\.\\./)+(planner/)?index\\.js$', message: 'Import from the room itself, not from the package entry.' },
        ],
      },
    ],
  },
};

/** The page draws and plans: it has neither ranks nor a command line. */
const studioRule = {
  files: ['src/studio/**/*.ts', 'src/studio/**/*.tsx'],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: '^(\\.\\./)+(runtime|cli|perf|ddp)/|^node:',
            message: 'studio may import only the planner and view (see docs/architecture.md).',
          },
          { regex: '^(\\.\\./)+(planner/)?index\\.js$', message: 'Import from the room itself, not from the package entry.' },
        ],
      },
    ],
  },
};

const questionStart =
  /^\*[\s*]*(What|Whether|Who|Whom|Whose|How|Why|Which|Where|(?:With|In|By|At|To|From|On|Of) (?:which|whom|what))\b/;

/** Doc comments begin with a noun or a verb. */
const docCommentStart = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: { start: 'Begin a doc comment with a noun or a verb, not with "{{words}}".' },
  },
  create: ({ sourceCode, report }) => ({
    Program() {
      for (const comment of sourceCode.getAllComments()) {
        const [, words] = (comment.type === 'Block' && questionStart.exec(comment.value)) || [];
        if (words !== undefined) report({ loc: comment.loc, messageId: 'start', data: { words } });
      }
    },
  }),
};

export default tseslint.config(
  { ignores: ['dist/', 'build/', 'site/build/', 'coverage/', 'src/runtime/device/kernels/assembly/', 'bench/peers/'] },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ['tsconfig.json', 'tsconfig.planner.json', 'tsconfig.studio.json', 'tsconfig.test.json'],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      '@typescript-eslint/no-unnecessary-boolean-literal-compare': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/unified-signatures': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      eqeqeq: 'error',
      'no-console': 'error',
    },
  },
  {
    files: ['src/**/*.ts', 'src/**/*.tsx'],
    rules: {
      // NUMBER_OF_THINGS for numbers, texts and booleans of a module, as in the AssemblyScript of the kernels; else camelCase.
      '@typescript-eslint/naming-convention': [
        'error',
        { selector: 'variable', modifiers: ['const', 'global'], types: ['number', 'string', 'boolean'], format: ['UPPER_CASE'] },
        {
          selector: 'variable',
          modifiers: ['const', 'global', 'destructured'],
          types: ['number', 'string', 'boolean'],
          format: null,
        },
        { selector: 'variable', modifiers: ['destructured'], format: null },
        // Public names.
        { selector: 'variable', filter: { regex: '^(version|defaultVersion)$', match: true }, format: null },
        { selector: 'variable', format: ['camelCase', 'PascalCase'] },
      ],
    },
  },
  {
    files: ['src/runtime/**/*.ts'],
    rules: {
      'max-lines-per-function': ['error', { max: 70, skipComments: true, skipBlankLines: true }],
      'max-params': ['error', 6],
    },
  },
  // Modules of threads begin with what their parent passed in.
  {
    files: ['src/runtime/threads/*-thread.ts', 'src/runtime/pool/pool-rank.ts'],
    rules: { '@typescript-eslint/naming-convention': 'off' },
  },
  {
    files: ['**/*.ts', '**/*.tsx', '**/*.mjs', '**/*.js'],
    plugins: { tccl: { rules: { 'doc-comment-start': docCommentStart } } },
    rules: {
      'tccl/doc-comment-start': 'error',
      // The formatter decides where code breaks; this holds for what it leaves alone: comments, and calls with long arguments.
      'max-len': [
        'error',
        { code: 130, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true, ignoreUrls: true },
      ],
    },
  },
  {
    files: ['**/*.mjs', '**/*.js'],
    extends: [eslint.configs.recommended],
    languageOptions: { globals: globals.node },
    // `process.exit` does not come back, which the rule cannot see.
    rules: { 'no-fallthrough': 'off' },
  },
  { files: ['examples/page/{main,rank}.mjs'], languageOptions: { globals: globals.browser } },
  { files: ['examples/gpu/*.mjs', 'test/tensors/*.mjs'], languageOptions: { globals: globals.browser } },
  { files: ['examples/**/*', 'bench/**/*', 'test/**/*', 'testing/**/*'], rules: { 'no-console': 'off' } },
  {
    files: ['src/cli/**/*.ts'],
    ignores: ['src/cli/output.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: "MemberExpression[property.name='write'] > MemberExpression[property.name=/^std(out|err)$/]",
          message: 'Text may come from files: print() of output.ts cleans it for terminals.',
        },
      ],
    },
  },
  { files: ['test/**/*.ts'], rules: { '@typescript-eslint/no-non-null-assertion': 'off' } },
  ...roomRules,
  platformRule,
  ...pageRules,
  filesBesideRooms,
  viewRule,
  studioRule,
);
