import { InvalidArgumentError } from '../../errors.js';
import { cpuModels } from '../../planner/topology/catalogue/cpus.js';
import { gpuModels } from '../../planner/topology/catalogue/gpus.js';
import {
  findMachine,
  type Machine,
  machines,
  PCIE_BOX_FORM,
  RACK_FORM,
  suggestMachine,
} from '../../planner/topology/catalogue/machines.js';
import { nicModels } from '../../planner/topology/catalogue/nics.js';
import { nvLinkGBps } from '../../planner/topology/bandwidths.js';
import { formatGBps } from '../../planner/topology/format.js';
import { print, printJson } from '../output.js';

/** `tccl topo list [MACHINE]`. */
export function list(name: string | undefined, options: { readonly json?: boolean }): void {
  if (name !== undefined) showMachine(name, options);
  else listAll(options);
}

/** Prints a machine's origin: sources, known facts and assumptions. */
function showMachine(name: string, options: { readonly json?: boolean }): void {
  const found = findMachine(name);
  if (found === undefined) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `topo list: the catalogue has no machine ${JSON.stringify(name)}${suggestMachine(name)}; tccl topo list shows all`,
    );
  }
  const { description, aliases, origin, limits } = found;
  if (options.json === true) {
    printJson(entryOf(found), 1);
    return;
  }
  print(`${found.name}: ${description}`);
  if (aliases.length > 0) print(`  names:     ${aliases.join(', ')}`);
  if (origin === undefined) print("  known:     the maker's guide; bandwidths are NCCL's figures");
  else {
    print(`  known:     ${origin.known}`, `  assumed:   ${origin.assumed}`);
    for (const source of origin.sources) print(`  source:    ${source}`);
    const variables = Object.entries(origin.variables ?? {}).map(([variable, value]) => `${variable}=${value}`);
    if (variables.length > 0) print(`  variables: ${variables.join(' ')}`);
    if (origin.network !== undefined) print(`  network:   ${origin.network}`);
  }
  for (const [code, reason] of Object.entries(limits ?? {})) print(`  limit:     ${code}: ${reason}`);
}

/** A machine without its tree. */
function entryOf({ name, description, aliases, origin, limits }: Machine): Omit<Machine, 'build'> {
  return { name, description, aliases, ...(origin === undefined ? {} : { origin }), ...(limits === undefined ? {} : { limits }) };
}

function listAll(options: { readonly json?: boolean }): void {
  if (options.json === true) {
    printJson(
      {
        machines: machines.map(entryOf),
        partsOfRacks: RACK_FORM,
        pcieBoxes: PCIE_BOX_FORM,
        gpus: gpuModels,
        nics: nicModels,
        cpus: cpuModels,
      },
      1,
    );
    return;
  }
  print('Machines');
  for (const { name, description, origin } of machines) if (origin === undefined) print(`  ${name.padEnd(18)}${description}`);
  print(`  ${RACK_FORM}: part of a rack`);
  print(`  ${PCIE_BOX_FORM}: a server for PCIe cards`, '');
  print('Machines that people rent or share (tccl topo list NAME shows the source of each)');
  for (const { name, description, origin } of machines) if (origin !== undefined) print(`  ${name.padEnd(18)}${description}`);
  print('', `GPUs${' '.repeat(13)}sm  PCIe  NVLinks`);
  for (const { id, sm, pciGeneration, nvlink, nvlinks, c2c } of gpuModels) {
    const links =
      nvlinks === 0
        ? '-'
        : `${nvlinks} (${formatGBps(nvlinks * nvLinkGBps(sm))} GB/s)${nvlink === 'pair' ? ' over a bridge' : ''}`;
    const chip = c2c === undefined ? '' : `, C2C ${formatGBps((c2c.bandwidthMBps * c2c.count) / 1000)} GB/s`;
    print(`  ${id.padEnd(13)}${String(sm).padStart(4)}  Gen${pciGeneration}  ${links}${chip}`);
  }
  print('', 'Network cards');
  for (const { id, speedMbps, pciGeneration } of nicModels)
    print(`  ${id.padEnd(14)}${String(speedMbps / 1000).padStart(4)} Gb/s  Gen${pciGeneration}`);
  print('', 'CPUs');
  for (const { id, name } of cpuModels) print(`  ${id.padEnd(14)}  ${name}`);
}
