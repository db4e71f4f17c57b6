import { describe, expect, it } from 'vitest';
import { searchHost, type SearchOptions } from '../../../../src/planner/graph/search-host.js';
import type { SearchEvent } from '../../../../src/planner/graph/trace.js';
import type { Parameters } from '../../../../src/planner/parameters.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { cpu, gpu, nic, nvSwitchLink, onlyLocalSystem, parametersWith, pciSwitch, systemXml } from '../topology/machine.js';

/** A kind of event with what distinguishes it, as `refused-exit rail`. */
function kindOf(event: SearchEvent): string {
  switch (event.kind) {
    case 'attempt':
      return `attempt in pass ${event.pass}`;
    case 'refused-path':
      return `refused-path ${event.reason.why}${event.reason.why === 'type' && event.reason.back ? ' back' : ''}`;
    case 'refused-entry':
      return `refused-entry ${event.reason}`;
    case 'refused-exit':
      return `refused-exit ${event.reason}`;
    case 'solution':
      return `solution ${event.better}`;
    case 'ended':
      return `ended ${event.outcome}`;
    case 'relaxed':
      return `relaxed ${event.what}`;
    case 'stopped':
      return `stopped ${event.why}`;
    default:
      return event.kind;
  }
}

function kindsOn(root: XmlElement, hosts: number, options: SearchOptions = {}, changes: Partial<Parameters> = {}): Set<string> {
  const parameters = parametersWith(changes);
  const gpus = onlyLocalSystem(root, parameters, 1_000_000).system.gpus.length;
  const kinds = new Set<string>();
  searchHost(onlyLocalSystem(root, parameters, hosts * gpus), parameters, {
    ...options,
    trace: (event) => kinds.add(kindOf(event)),
  });
  return kinds;
}

// PCI Gen1 x1: slower than the slowest speed that is tried.
const slow = 'class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1"';
const hopper = 'sm="90" gdr="1"';
const graphFile =
  parseXml(`<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="3" speedinter="3" typeintra="PIX" typeinter="PIX" samechannels="1">
  <channel><gpu dev="0"/><gpu dev="0x1"/></channel></graph></graphs>`).root;
const plane = (number: number) => nic(`0${number + 6}`, number, `speed="200000" port="1" gdr="1" plane="${number}"`);

describe('every kind of decision is reported', () => {
  const always = ['search', 'attempt in pass 1', 'result'];
  it.each<[string, () => Set<string>, readonly string[]]>([
    [
      'two DGX H100 whose network is asked to reduce',
      () => kindsOn(machine('dgx-h100'), 2, { collnet: true }),
      [
        'attempt in pass 2',
        'refused-path type',
        'refused-path bandwidth',
        'refused-entry bandwidth',
        'refused-entry pair',
        'refused-entry collnet',
        'refused-exit rail',
        'refused-exit pair',
        'solution first',
        'solution bandwidth',
        'solution heads',
        'ended perfect',
        'ended all tried',
        'ended out of steps',
        'relaxed sameChannels',
        'relaxed pattern',
        'relaxed typeIntra',
        'relaxed typeInter',
        'relaxed crossNic',
        'relaxed speed',
        'stopped perfect',
        'stopped enough',
        'stopped nothing left to relax',
      ],
    ],
    ['one DGX A100: fast channels are split', () => kindsOn(machine('dgx-a100'), 1), ['duplicated']],
    ['two boards of Grace Hopper', () => kindsOn(machine('gh200-4'), 2), ['refused-path type back', 'refused-exit other NIC']],
    ['four cards on PCI', () => kindsOn(machine('pcie-4-l40s'), 1, { collnet: true }), ['solution hops']],
    ['two hybrid cube meshes', () => kindsOn(machine('dgx-1v'), 2), ['stopped out of steps']],
    [
      'NICs on two planes',
      () => kindsOn(systemXml(cpu(0, gpu('02', 0) + gpu('03', 1) + plane(0) + plane(1))), 2),
      ['refused-exit plane'],
    ],
    [
      'a GPU behind a link that is too slow',
      () => kindsOn(systemXml(cpu(0, gpu('02', 0) + pciSwitch('03', gpu('04', 1), slow) + nic('05', 0))), 1),
      ['simple-order'],
    ],
    [
      'NVLink SHARP where there is no NVSwitch',
      () => kindsOn(systemXml(cpu(0, gpu('01', 0, '', hopper) + gpu('02', 1, '', hopper))), 1, {}, { nvlsEnable: 1 }),
      ['no-hardware'],
    ],
    [
      'NVLink SHARP where one GPU has no NVLink',
      () =>
        kindsOn(systemXml(cpu(0, gpu('01', 0, nvSwitchLink(18), hopper) + gpu('02', 1, '', hopper))), 1, {}, { nvlsEnable: 1 }),
      ['refused-path unconnected'],
    ],
    [
      'a graph of a file',
      () => kindsOn(systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + gpu('03', 1)))), 1, { graphFile }),
      ['from-file'],
    ],
  ])('%s', (_, kinds, expected) => {
    expect([...kinds()]).toEqual(expect.arrayContaining([...always, ...expected]));
  });
});
