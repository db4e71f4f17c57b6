import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../../src/planner/parameters.js';
import { changesFor } from '../../../../../src/planner/plan/explain/help/changes.js';
import { answerHelp, type Tried, tryChanges } from '../../../../../src/planner/plan/explain/help/try-changes.js';
import type { ChangeableCluster } from '../../../../../src/planner/plan/changed-cluster.js';
import { plan } from '../../../../../src/planner/plan/plan.js';
import { machine } from '../../../../../src/planner/topology/catalogue/machines.js';
import { writeXml } from '../../../../../src/planner/topology/xml/write.js';
import { descendants, type XmlElement } from '../../../../../src/planner/topology/xml/tree.js';
import { choose } from '../../../../../src/planner/tuning/choose.js';
import { tune } from '../../../../../src/planner/tuning/tune.js';

const sizes = [4 * 2 ** 20, 2 ** 30];
const question = { about: 'help', collective: 'AllReduce', sizes } as const;

function input(
  name: string,
  count: number,
  environment: Readonly<Record<string, string>> = {},
  edit: (root: XmlElement) => void = () => undefined,
): ChangeableCluster {
  const root = machine(name);
  edit(root);
  return {
    cluster: { hosts: [{ machine: root, count, name }] },
    roots: new Map(),
    parameters: parametersFromEnvironment(environment).parameters,
    environment,
  };
}

const all = (about: ChangeableCluster): Tried[] => [...tryChanges(about, question)].map(({ tried }) => tried);

describe('what would help', () => {
  it('leaves the machine unchanged, and its times before are those of the plan', () => {
    const about = input('hgx-a100-4', 2);
    const root = about.cluster.hosts[0]?.machine as XmlElement;
    const text = writeXml(root);
    const tried = all(about);
    expect(writeXml(root)).toBe(text);
    const made = plan(about.cluster, about.parameters);
    const before = sizes.map((bytes) => choose(tune(made, about.parameters), 'AllReduce', bytes)?.timeUs);
    for (const { times, refused } of tried)
      if (refused === undefined) expect(times.map(({ beforeUs }) => beforeUs)).toEqual(before);
    expect(tried.filter(({ change }) => change.kind === 'nic').length).toBeGreaterThan(1);
  });

  it('lists the largest gain first, and includes unsetting harmful variables', () => {
    const about = input('hgx-a100-4', 2, { NCCL_MAX_NCHANNELS: '2', NCCL_ALGO: 'tree', NCCL_PROTO: 'LL' });
    const tried = all(about);
    const { evidence, sentences, title } = answerHelp(question, tried, 0);
    expect(title).toMatch(/^NCCL_PROTO: LL -> /);
    expect(sentences[1]).toContain('times as fast. 4 MiB ');
    expect(evidence['tried']).toHaveLength(tried.length);
    expect(tried.find(({ change }) => change.what === 'NCCL_PROTO' && change.variable?.value === null)?.gain).toBeGreaterThan(
      1.5,
    );
  });

  it('finds the link that is slower than similar ones', () => {
    const about = input('dgx-a100', 2, {}, (root) => {
      for (const pci of [...descendants(root)].filter(
        (each) => each.name === 'pci' && each.children.some(({ name }) => name === 'nic'),
      ))
        pci.attributes.set('link_width', '4');
    });
    const changes = changesFor([about.cluster.hosts[0]?.machine as XmlElement], about.parameters, {});
    expect(changes).toContainEqual(expect.objectContaining({ what: 'PCIe links of NICs', before: 'Gen4 x4', after: 'Gen4 x8' }));
  });

  it('names changes that cannot be made', () => {
    const [first] = tryChanges(input('pcie-2-l40s', 2), question);
    const refused: Tried[] = first === undefined ? [] : [{ ...first.tried, gain: 1, refused: 'there is no path' }];
    expect(answerHelp(question, refused, 0).sentences).toContain(
      `${first?.tried.change.what ?? ''} ${first?.tried.change.after ?? ''} cannot be: there is no path.`,
    );
  });

  it('names changes that were not tried', () => {
    const [first] = tryChanges(input('pcie-2-l40s', 2), question);
    const { sentences } = answerHelp(question, first === undefined ? [] : [first.tried], 7);
    expect(sentences.at(-1)).toBe('7 changes not tried, for lack of time.');
  });
});
