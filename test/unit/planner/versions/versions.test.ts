import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { allRules, rulesBetween, versionsPage } from '../../../../src/planner/versions/describe.js';
import { rulesOf } from '../../../../src/planner/versions/rules.js';
import { ncclInTorch, torchReleases } from '../../../../src/planner/versions/torch.js';
import {
  compareVersions,
  comparedVersions,
  coveredVersions,
  defaultVersion,
  ncclVersion,
  releases,
} from '../../../../src/planner/versions/version.js';

describe('versions of NCCL', () => {
  it('are read in the spellings of people, tags and packages', () => {
    expect(['2.26.2', 'v2.26.2-1', '2.26.2+cuda12.2'].map(ncclVersion)).toEqual(['2.26.2', '2.26.2', '2.26.2']);
  });

  it('that are not covered are refused with the nearest ones', () => {
    expect(() => ncclVersion('2.26.4')).toThrow(
      'the nearest that are: 2.26.3 and 2.26.5 (tccl nccl rules --from 2.26.3 --to 2.26.5 lists what changed between them)',
    );
    expect(() => ncclVersion('2.99.1')).toThrow(`the nearest that is: ${coveredVersions[0] ?? ''}.`);
    expect(() => ncclVersion('2.99')).toThrow(`NCCL 2.99 is not covered; the nearest that is: ${coveredVersions[0] ?? ''}.`);
    expect(() => ncclVersion('2.4.8')).toThrow(`the nearest that is: ${coveredVersions.at(-1) ?? ''}`);
    expect(() => ncclVersion('2.26')).toThrow('three numbers; covered of 2.26: 2.26.6, 2.26.5, 2.26.3, 2.26.2');
    expect(() => ncclVersion('newest')).toThrow("'newest' is no version of NCCL: write three numbers");
  });

  it('are covered newest first, and those that are compared are among them', () => {
    expect([...releases].sort((a, b) => compareVersions(b, a))).toEqual(releases);
    expect(comparedVersions.filter((version) => !coveredVersions.includes(version))).toEqual([]);
  });

  it('come with releases of PyTorch', () => {
    expect(['2.7', '2.7.1', '2.7.1+cu128', 'v2.5.0'].map(ncclInTorch)).toEqual(['2.26.2', '2.26.2', '2.26.2', '2.21.5']);
    expect(['2.10', '2.10.0+cu128', '2.10+cu130', '2.12+cu126', '2.12+cu130'].map(ncclInTorch)).toEqual([
      '2.27.5',
      '2.27.5',
      '2.28.9',
      '2.29.3',
      '2.29.7',
    ]);
    for (const { nccl, builds, others = {} } of torchReleases) {
      for (const one of [nccl, ...Object.values(others)]) expect(releases).toContain(one);
      for (const build of Object.keys(others)) expect(builds).toContain(build);
    }
    expect(() => ncclInTorch('1.13')).toThrow('goes from 2.1 to');
    expect(() => ncclInTorch('2.7+cpu')).toThrow('no NCCL');
    expect(() => ncclInTorch('2.7+rocm6.3')).toThrow('no NCCL');
    expect(() => ncclInTorch('2.1.0+cu118')).toThrow('CUDA 11');
    expect(() => ncclInTorch('2.7+cu130')).toThrow('PyTorch 2.7 has no wheels for cu130, only for cu118, cu126, cu128');
    expect(() => ncclInTorch('2.8+cu118')).toThrow('no wheels for cu118');
  });
});

describe('rules', () => {
  it('begin at the oldest release, and change at releases in ascending order', () => {
    for (const { name, rule } of allRules) {
      const from = rule.steps.map((step) => step.from);
      expect(from[0], name).toBe(releases.at(-1));
      expect(
        from.filter((version) => !releases.includes(version)),
        name,
      ).toEqual([]);
      expect([...from].sort(compareVersions), name).toEqual(from);
      expect(
        rule.steps.every(({ means }) => means.length > 0),
        name,
      ).toBe(true);
    }
  });

  it('give the rule of a version', () => {
    expect(rulesOf({ ncclVersion: '2.29.7' }).hardwareNodes).toBe(false);
    expect(rulesOf({ ncclVersion: defaultVersion }).hardwareNodes).toBe(true);
    expect(rulesOf({ ncclVersion: '2.27.4' }).blackwellNvLinkGBps).toBe(40);
  });

  it('between two versions are those whose value changed, either way', () => {
    const names = (from: string, to: string) => rulesBetween(from, to).map(({ name }) => name);
    expect(names('2.27.3', '2.27.5')).toContain('pathOrder');
    expect(names('2.27.5', '2.27.3')).toEqual(names('2.27.3', '2.27.5'));
    expect(names('2.26.2', '2.26.5')).toEqual([]);
  });

  it('equal the page in docs/reference', () => {
    expect(readFileSync('docs/reference/nccl-versions.md', 'utf8')).toBe(versionsPage());
  });
});

describe('a variable that a version does not have', () => {
  it('is noted where no plan depends on it', () => {
    const notesOf = (name: string, version: string) =>
      parametersFromEnvironment({ [name]: '1' }, version).notes.map(({ message }) => message);
    expect(notesOf('NCCL_RUN_DIAGNOSTICS', '2.30.7')).toEqual([
      'NCCL 2.30.7 has no variable NCCL_RUN_DIAGNOSTICS, which came with 2.31.2: it is ignored',
    ]);
    expect(notesOf('NCCL_PSK', '2.30.7')).toEqual([
      'NCCL 2.30.7 has no variable NCCL_PSK, which came with 2.31 or 2.32 (it is not known which): it is ignored',
    ]);
    expect([notesOf('NCCL_RUN_DIAGNOSTICS', '2.31.2'), notesOf('NCCL_PSK', '2.31.2')]).toEqual([[], []]);
  });

  it('is ignored with a note', () => {
    const { parameters, notes } = parametersFromEnvironment({ NCCL_PXN_C2C: '0' }, '2.26.2');
    expect(parameters.pxnC2c).toBeUndefined();
    expect(notes).toEqual([
      { variable: 'NCCL_PXN_C2C', message: 'NCCL 2.26.2 has no variable NCCL_PXN_C2C, which came with 2.27.3: it is ignored' },
    ]);
  });
});
