import { gpuModels } from '../catalogue/gpus.js';
import { findMachine, type Machine, machines } from '../catalogue/machines.js';
import type { XmlElement } from '../xml/tree.js';
import { bySeverity, type Finding } from './finding.js';
import { devicesOf } from './inventory.js';

/**
 * Turns warnings into remarks if the topology is that of a machine of the catalogue, and every such machine has the same limit at
 * the same place and cost.
 */
export function markDesign(findings: Finding[], root: XmlElement, examine: (root: XmlElement) => Finding[]): Finding[] {
  if (!findings.some(({ severity }) => severity === 'warning')) return findings;
  const devices = deviceKey(root);
  for (const machine of candidates(root)) {
    const tree = machine.build();
    if (deviceKey(tree) !== devices) continue;
    const ofAll = examine(tree);
    return findings
      .map((finding) => {
        const reason = machine.limits?.[finding.code];
        const isSame = reason !== undefined && ofAll.some((other) => covers(other, finding));
        if (!isSame) return finding;
        return { ...finding, severity: 'info' as const, remedy: `nothing: every ${machine.name} is so (${reason})` };
      })
      .sort(bySeverity);
  }
  return findings;
}

/** Machines of the catalogue with limits, and the box of PCIe cards that the topology may be. */
function candidates(root: XmlElement): Machine[] {
  const { gpus } = devicesOf(root);
  const device = Number(gpus[0]?.pci.element.attributes.get('device'));
  const model = gpuModels.find((candidate) => candidate.device === device);
  const box = model === undefined ? undefined : findMachine(`pcie-${gpus.length}-${model.id}`);
  return [...machines, ...(box === undefined ? [] : [box])].filter(({ limits }) => limits !== undefined);
}

/** Bus ids of all GPUs and network cards. */
function deviceKey(root: XmlElement): string {
  const { gpus, nets } = devicesOf(root);
  const busIds = [...gpus, ...nets].map(({ pci }) => pci?.element.attributes.get('busid')?.toLowerCase() ?? '');
  return [...new Set(busIds)].sort().join(' ');
}

function covers(other: Finding, finding: Finding): boolean {
  return (
    other.code === finding.code &&
    other.gbps?.is === finding.gbps?.is &&
    other.gbps?.couldBe === finding.gbps?.couldBe &&
    finding.places.every(({ element }) => other.places.some((place) => place.element === element))
  );
}
