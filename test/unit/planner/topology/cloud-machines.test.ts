import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defaultParameters, parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { findMachine, machine, machines } from '../../../../src/planner/topology/catalogue/machines.js';
import { networkOfCards } from '../../../../src/planner/topology/catalogue/nics.js';
import { diagnose } from '../../../../src/planner/topology/doctor/diagnose.js';
import { pciLink } from '../../../../src/planner/topology/bandwidths.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { descendants, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { oracleMissing, oracleXml } from './oracle-files.js';

const rented = machines.filter(({ origin }) => origin !== undefined);

/** Every GPU and card: where it is by bus ids, the bandwidths up to the CPU, its number, and what NCCL reads of it. */
function places(root: XmlElement): Record<string, string> {
  const devices = [...descendants(root)].filter(({ name }) => name === 'gpu' || name === 'net');
  return Object.fromEntries(
    devices.map((device) => {
      const attribute = (name: string) => Number(device.attributes.get(name) ?? 0);
      const up: string[] = [];
      for (let at = device.parent; at !== undefined && at.name !== 'system'; at = at.parent) {
        const link = pciLink(Number(at.attributes.get('link_width')), at.attributes.get('link_speed') ?? '');
        if (at.name === 'pci') up.push(`${at.attributes.get('busid') ?? ''} ${link.bandwidthGBps}`);
        if (at.name === 'cpu') up.push(`cpu ${at.attributes.get('numaid') ?? ''} ${at.attributes.get('vendor') ?? ''}`);
      }
      const facts = ['sm', 'speed', 'gdr'].map(attribute).join(' ');
      return [`${device.name} ${attribute('dev')}`, `${facts} at ${up.join(' < ')}`];
    }),
  );
}

describe('machines of clouds', () => {
  it.each(rented)('$name has its sources, known facts and assumptions', ({ origin, aliases, name }) => {
    expect(origin?.sources.length).toBeGreaterThan(0);
    for (const source of origin?.sources ?? []) expect(source).toMatch(/^https:\/\/\S+$/);
    expect([origin?.known, origin?.assumed]).not.toContain('');
    for (const alias of aliases) expect(findMachine(alias)?.name).toBe(name);
  });

  it('have the network of their cards, where these are for one', () => {
    const networkOf = (name: string) => networkOfCards(machine(name));
    expect(['aws-p4d', 'aws-p5', 'perlmutter', 'dgx-h100', 'gcp-a4'].map(networkOf)).toEqual([
      'efa-v1',
      'efa',
      'slingshot',
      undefined,
      undefined,
    ]);
    for (const { name, origin } of rented) expect(origin?.network, name).toBe(networkOf(name) ?? origin?.network);
  });

  it.each(rented.filter(({ origin }) => origin?.variables !== undefined))('$name: NCCL reads its variables', ({ origin }) => {
    const { parameters, notes } = parametersFromEnvironment(origin?.variables ?? {});
    expect(notes).toEqual([]);
    expect(parameters).not.toEqual(defaultParameters);
  });

  it('have names of their own', () => {
    const names = machines.flatMap(({ name, aliases }) => [name, ...aliases]);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });
});

describe.skipIf(oracleMissing !== undefined)('published files', () => {
  it.each([
    ['aws-p4d', 'real-aws-p4d.n1'],
    ['azure-nd-v2', 'real-azure-ndv2.n1'],
    ['azure-nd-h100-v5', 'real-azure-ndv5.n1'],
  ])('%s has its devices, numbers and links where %s has them', (name, recorded) => {
    expect(places(machine(name))).toEqual(places(parseXml(oracleXml(recorded)).root));
  });

  it('Azure ND v4 equals its file, except for numbers in the order of bus ids', () => {
    const withoutNumbers = (root: XmlElement) => Object.values(places(root)).sort();
    const recorded = parseXml(oracleXml('real-azure-ndv4.n1')).root;
    expect(withoutNumbers(machine('azure-nd-v4'))).toEqual(withoutNumbers(recorded));
  });
});

describe('limits of a type of machine', () => {
  it.each(machines)('$name has no findings but its limits, which are remarks', ({ name, limits = {} }) => {
    const findings = diagnose(machine(name));
    expect(findings.filter(({ severity }) => severity !== 'info')).toEqual([]);
    const codes = findings.filter(({ remedy }) => remedy.startsWith('nothing:')).map(({ code }) => code);
    expect([...new Set(codes)].sort()).toEqual(Object.keys(limits).sort());
  });

  it.each(['pcie-2-rtx4090', 'pcie-4-h100-nvl', 'pcie-8-rtx-pro-6000', 'pcie-8-l40s'])('%s has no findings', (name) => {
    expect(diagnose(machine(name)).filter(({ severity }) => severity !== 'info')).toEqual([]);
  });

  it('stay remarks in a file of such a machine', () => {
    const [finding] = diagnose(parseXml(writeXml(machine('aws-p4d'))).root);
    expect(finding).toMatchObject({
      code: 'gpu-link-slow',
      severity: 'info',
      remedy: 'nothing: every aws-p4d is so (its PCIe is Gen3)',
    });
  });

  it('do not hide worse findings', () => {
    const root = machine('aws-p4d');
    const slow = [...descendants(root)].find(({ name }) => name === 'gpu')?.parent;
    slow?.attributes.set('link_width', '8');
    const warnings = diagnose(root).filter(({ severity }) => severity === 'warning');
    expect(warnings.map(({ code, places: at }) => [code, at.map(({ element }) => element)])).toEqual([
      ['gpu-link-slow', ['<pci busid="0000:10:1c.0">']],
    ]);
  });

  it('apply only to machines with the same bus ids', () => {
    const other = writeXml(machine('aws-p4d')).replaceAll('0000:10:', '0000:11:');
    expect(diagnose(parseXml(other).root).map(({ severity }) => severity)).toEqual(['warning']);
  });
});

it('docs/reference/machines.md describes each machine as the catalogue does', () => {
  const page = readFileSync('docs/reference/machines.md', 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const wanted = rented.flatMap(({ name, origin }) => {
    if (origin === undefined) return [];
    const sources = origin.sources.map((source, index) => `[${index + 1}](${source})`).join(', ');
    return [`| \`${name}\` | ${origin.known} | ${origin.assumed} | ${sources} |`];
  });
  expect(rows).toEqual(wanted);
});
