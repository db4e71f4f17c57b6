import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { changesFor } from '../../../../src/planner/explain/help/changes.js';
import { answerHelp, type HelpInput, type Tried, tryChanges } from '../../../../src/planner/explain/help/try-changes.js';
import { prepareCluster } from '../../../../src/planner/plan/cluster.js';
import { planPrepared } from '../../../../src/planner/plan/plan.js';
import { predictCall, simulatorOf } from '../../../../src/planner/plan/prediction.js';
import { defaultEnvironment } from '../../../../src/planner/simulate/environment.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { descendants, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';

const sizes = [4 * 2 ** 20, 2 ** 30];
const question = { collective: 'AllReduce', sizes } as const;

function input(
  name: string,
  count: number,
  environment: Readonly<Record<string, string>> = {},
  edit: (root: XmlElement) => void = () => undefined,
): HelpInput {
  const root = machine(name);
  edit(root);
  return {
    cluster: { hosts: [{ machine: root, count, name }] },
    roots: new Map(),
    parameters: parametersFromEnvironment(environment).parameters,
    environment,
    simulated: defaultEnvironment,
  };
}

const all = (about: HelpInput): Tried[] => [...tryChanges(about, question)].map(({ tried }) => tried);

describe('what would help', () => {
  it('leaves the machine unchanged, and its times before are those of the plan', () => {
    const about = input('hgx-a100-4', 2);
    const root = about.cluster.hosts[0]?.machine as XmlElement;
    const text = writeXml(root);
    const tried = all(about);
    expect(writeXml(root)).toBe(text);
    const prepared = prepareCluster(about.cluster, about.parameters);
    const simulator = simulatorOf(prepared, about.parameters, planPrepared(prepared, about.parameters));
    const before = sizes.map((bytes) => predictCall(simulator, 'AllReduce', bytes)[0]?.timeUs);
    for (const { times, refused } of tried)
      if (refused === undefined) expect(times.map(({ beforeUs }) => beforeUs)).toEqual(before);
    expect(tried.filter(({ change }) => change.kind === 'nic').length).toBeGreaterThan(1);
  });

  it('lists the largest gain first, and includes unsetting harmful variables', () => {
    const about = input('hgx-a100-4', 2, { NCCL_MAX_NCHANNELS: '2', NCCL_ALGO: 'tree', NCCL_PROTO: 'LL' });
    const tried = all(about);
    const { evidence, sentences, title } = answerHelp(question, tried, 0, true);
    const gains = sentences.flatMap((each) => /: ([\d.]+) times as fast/.exec(each)?.slice(1) ?? []).map(Number);
    expect(gains.length).toBeGreaterThan(2);
    expect(gains).toEqual([...gains].sort((a, b) => b - a));
    expect(sentences[1]?.startsWith(`1. ${title}: `)).toBe(true);
    expect(sentences.join('\n')).toMatch(/\d\. NCCL_PROTO: LL -> not set: /);
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
    expect(answerHelp(question, refused, 0, true).sentences).toContain(
      `${first?.tried.change.what ?? ''} ${first?.tried.change.after ?? ''} cannot be: there is no path.`,
    );
  });

  it('names changes that were not tried', () => {
    const [first] = tryChanges(input('pcie-2-l40s', 2), question);
    const { sentences } = answerHelp(question, first === undefined ? [] : [first.tried], 7, true);
    expect(sentences.at(-1)).toBe('7 changes not tried, for lack of time.');
  });
});
