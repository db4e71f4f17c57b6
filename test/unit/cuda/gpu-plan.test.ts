import { describe, expect, it } from 'vitest';
import { planGpus, type GpuFacts } from '../../../src/cuda/gpu-plan.js';
import { plan } from '../../../src/planner/plan/plan.js';
import { machine, machines } from '../../../src/planner/topology/catalogue/machines.js';
import { PathType } from '../../../src/planner/topology/types.js';
import { parseXml } from '../../../src/planner/topology/xml/parse.js';
import { descendants, type XmlElement } from '../../../src/planner/topology/xml/tree.js';

/** Facts of ranks on GPUs of these bus ids. */
function facts(busIds: readonly string[], given: Partial<GpuFacts> = {}): GpuFacts[] {
  return busIds.map((busId, rank) => ({ uuid: String(rank), busId, sm: 90, isExclusive: false, p2pLevel: undefined, ...given }));
}

/** Four GPUs: two below one switch, one below another switch of the CPU, one of the other CPU. */
const fourGpus = (vendor = 'GenuineIntel', modelId = 106): XmlElement => {
  const pci = (busId: string, content: string, kind = '0x060400') =>
    `<pci busid="${busId}" class="${kind}" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">${content}</pci>`;
  const gpu = (busId: string, dev: number) => pci(busId, `<gpu dev="${dev}" sm="90" rank="${dev}" gdr="1"/>`, '0x030200');
  const cpu = (numa: number, content: string) =>
    `<cpu numaid="${numa}" affinity="ff" arch="x86_64" vendor="${vendor}" familyid="6" modelid="${modelId}">${content}</cpu>`;
  const near = cpu(
    0,
    pci('0000:10:00.0', gpu('0000:11:00.0', 0) + gpu('0000:1B:00.0', 1)) + pci('0000:20:00.0', gpu('0000:21:00.0', 2)),
  );
  return parseXml(`<system version="1">${near}${cpu(1, gpu('0000:41:00.0', 3))}</system>`).root;
};
const [first, second, third, fourth] = ['0000:11:00.0', '0000:1b:00.0', '0000:21:00.0', '0000:41:00.0'] as const;

describe('ways between the GPUs of a host', () => {
  it('are as near as their topology has them', () => {
    expect(planGpus(facts([first, second]), fourGpus)).toEqual({
      paths: [
        ['LOC', 'PIX'],
        ['PIX', 'LOC'],
      ],
      how: 'over PCIe (PIX)',
      nvlsChannels: 16,
    });
    const { paths } = planGpus(facts([fourth, first, third, fourth]), fourGpus);
    expect(paths).toEqual([
      ['LOC', 'SYS', 'SYS', 'LOC'],
      ['SYS', 'LOC', 'PHB', 'SYS'],
      ['SYS', 'PHB', 'LOC', 'SYS'],
      ['LOC', 'SYS', 'SYS', 'LOC'],
    ]);
    const all = [...descendants(machine('dgx-h100'))].flatMap(({ name, parent }) =>
      name === 'gpu' ? (parent?.attributes.get('busid') ?? '') : [],
    );
    expect(planGpus(facts(all), () => machine('dgx-h100'))).toMatchObject({ how: 'over NVLink' });
  });

  it('go through the host from the distance on that NCCL has for the CPU, or that a rank wants', () => {
    const far =
      `the GPUs of ranks 0 and 1, ${first} and ${third}, are as far apart as PHB, farther than PXB ` +
      '(as NCCL has it on this machine; TCCL_P2P_LEVEL=SYS allows it)';
    expect(planGpus(facts([first, third]), fourGpus).refusal).toBe(far);
    // Two GPUs of AMD may be anywhere, three not.
    const amd = () => fourGpus('AuthenticAMD', 1);
    expect(planGpus(facts([first, fourth]), amd).refusal).toBeUndefined();
    expect(planGpus(facts([first, second, fourth]), amd).refusal).toMatch('ranks 0 and 2');
    const wanted = (p2pLevel: PathType, busId: string) => planGpus(facts([first, busId], { p2pLevel }), fourGpus).refusal;
    expect(wanted(PathType.SYS, fourth)).toBeUndefined();
    expect(wanted(PathType.PHB, third)).toBeUndefined();
    expect(wanted(PathType.NVL, second)).toBe(
      `the GPUs of ranks 0 and 1, ${first} and ${second}, are as far apart as PIX, farther than NVL (TCCL_P2P_LEVEL)`,
    );
    // Of several ranks, the one that wants the least.
    const mixed = [PathType.SYS, PathType.PIX].flatMap((p2pLevel, rank) => facts([rank === 0 ? first : third], { p2pLevel }));
    expect(planGpus(mixed, fourGpus).refusal).toMatch('farther than PIX');
  });

  it('between ranks of one GPU need no topology', () => {
    const never = (): XmlElement => {
      throw new Error('no topology');
    };
    expect(planGpus(facts([first, first], { p2pLevel: PathType.LOC }), never)).toMatchObject({ how: 'on one GPU' });
    expect(planGpus(facts([first, first], { p2pLevel: PathType.LOC }), never)).not.toHaveProperty('refusal');
  });

  it('are left to the driver where the topology is unknown, unless a rank sets a level', () => {
    const other = '0000:99:00.0';
    const why = `the topology of the machine has no GPU ${other}`;
    expect(planGpus(facts([first, other]), fourGpus)).toEqual({ how: `over unknown paths (${why})`, nvlsChannels: 16 });
    expect(planGpus(facts([first, other], { p2pLevel: PathType.SYS }), fourGpus)).not.toHaveProperty('refusal');
    expect(planGpus(facts([first, other], { p2pLevel: PathType.PXB }), fourGpus).refusal).toBe(
      `TCCL_P2P_LEVEL=PXB is set, and the paths between GPUs are unknown: ${why}`,
    );
  });
});

describe('NVLS', () => {
  it('has the channels of the oldest GPU', () => {
    const of = (...sms: readonly number[]) => planGpus(sms.map((sm) => ({ ...facts([first])[0]!, sm }))).nvlsChannels;
    expect([of(90), of(100), of(100, 90), of(107)]).toEqual([16, 24, 16, 24]);
  });

  it('has every rank as a head, and as many channels as here, in the plans of machines', () => {
    const seen = machines.flatMap(({ name }) => {
      if (name.includes('nvl72')) return [];
      const { nvls } = plan({ hosts: [{ machine: machine(name), count: 1 }] });
      if (nvls === undefined) return [];
      const sms = [...descendants(machine(name))].flatMap((gpu) => (gpu.name === 'gpu' ? Number(gpu.attributes.get('sm')) : []));
      expect(nvls.heads).toEqual([sms.map((_, rank) => rank)]);
      expect(nvls.nChannels).toBe(planGpus(sms.map((sm) => ({ ...facts([first])[0]!, sm }))).nvlsChannels);
      return name;
    });
    expect(seen).toEqual(expect.arrayContaining(['dgx-h100', 'dgx-b200', 'dgx-b300', 'gb200-tray', 'vr200-tray']));
  });
});
