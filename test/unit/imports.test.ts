import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ESLint } from 'eslint';
import { describe, expect, it } from 'vitest';
import { pageFiles } from '../../scripts/page-files.mjs';
import { ts } from './typescript.js';

/** Modules of ours that each module imports, type-only imports included. */
function importGraph(root: string): Map<string, string[]> {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((file) => join(root, file))
    .filter((file) => file.endsWith('.ts') && !file.includes('kernels/assembly'));
  return new Map(
    files.map((file) => {
      const { importedFiles } = ts.preProcessFile(readFileSync(file, 'utf8'));
      const imported = importedFiles
        .filter(({ fileName }) => fileName.startsWith('.'))
        .map(({ fileName }) => join(dirname(file), fileName.replace(/\.js$/, '.ts')));
      return [file, imported];
    }),
  );
}

/** One circle of modules, each of which imports the next, or undefined. */
function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    path.push(file);
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next);
      if (cycle !== undefined) return cycle;
    }
    path.pop();
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const cycle = visit(file);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

/** Modules of ours that are loaded together with a module: imports of types alone are not. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded;
  loaded.add(file);
  for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )(?:[^'";]*? from )?'(\.[^']*)'/gm))
    loadedWith(join(dirname(file), from.replace(/\.js$/, '.ts')), loaded);
  return loaded;
}

describe('imports', () => {
  it.each([
    [
      'src/cli/plan/plan.ts',
      ['planner/log/rules', 'planner/log/job/read-log.ts', 'planner/simulate/simulate.ts', 'planner/schedule/'],
    ],
    ['src/cli/topo/show.ts', ['planner/log/rules', 'planner/log/job/read-log.ts', 'planner/graph/']],
    ['src/cli/main.ts', ['cli/commands/', 'planner/', 'runtime/']],
    ['src/index.ts', ['planner/topology/', 'planner/log/', 'planner/tuning/']],
  ])('of %s load no rarely needed module', (file, rarelyNeeded) => {
    const loaded = [...loadedWith(file)];
    expect(loaded.length).toBeGreaterThan(3);
    for (const path of rarelyNeeded) {
      expect(existsSync(`src/${path}`)).toBe(true);
      expect(loaded.filter((other) => other.startsWith(`src/${path}`))).toEqual([]);
    }
  });

  it('have no cycles, those of types included', () => {
    const graph = importGraph('src');
    expect(graph.get('src/planner/plan/plan.ts')).toContain('src/planner/plan/cluster.ts');
    expect(findCycle(graph)?.join(' → ')).toBeUndefined();
  });

  it('of the log lead from a room to one below it', () => {
    const rooms = ['lines', 'rules', 'deaths', 'matching', 'job', 'machine', 'checks', 'verdict'];
    const roomOf = (file: string) => rooms.indexOf(/^src\/planner\/log\/(\w+)\//.exec(file)?.[1] ?? '');
    const inner = [...importGraph('src/planner/log')].filter(([file]) => roomOf(file) >= 0);
    expect(inner.length).toBeGreaterThan(60);
    const upward = inner.flatMap(([file, imported]) =>
      imported.filter((other) => roomOf(other) > roomOf(file)).map((other) => `${file} → ${other}`),
    );
    expect(upward).toEqual([]);
  });

  it('are checked for cycles: a made-up one is found', () => {
    const graph = new Map([
      ['a', ['b']],
      ['b', ['c']],
      ['c', ['b']],
    ]);
    expect(findCycle(graph)).toEqual(['b', 'c', 'b']);
  });
});

describe('modules that pages load', () => {
  const modules = pageFiles();

  it('are the entries of dist/browser with the forms of the condition browser, and what they import', () => {
    expect(modules).toEqual(
      expect.arrayContaining([
        'src/browser/index.ts',
        'src/devices/device.ts',
        'src/ddp/checkpoint.ts',
        'src/runtime/platform/browser/files.ts',
        'src/runtime/page/instead/transport/networks.ts',
        'src/runtime/resources/network-engine-of.ts', // imported at run time
      ]),
    );
    for (const absent of ['platform/node/files.ts', 'transport/networks.ts', 'init/init.ts', 'launch/bind.ts'])
      expect(modules).not.toContain(`src/runtime/${absent}`);
  });

  it('are forbidden globals and modules of Node.js by lint', async () => {
    const eslint = new ESLint();
    for (const file of modules.filter((one) => !one.startsWith('src/runtime/platform/') && !one.startsWith('src/planner/'))) {
      const { rules } = (await eslint.calculateConfigForFile(file)) as { readonly rules: object };
      const text = JSON.stringify(rules);
      expect([file, text.includes('"name":"process"'), text.includes('"name":"Buffer"'), text.includes('^node:')]).toEqual([
        file,
        true,
        true,
        true,
      ]);
    }
  });
});
