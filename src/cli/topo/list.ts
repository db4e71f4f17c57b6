import { cpuModels } from '../../planner/topology/catalogue/cpus.js';
import { gpuModels } from '../../planner/topology/catalogue/gpus.js';
import { machines, PCIE_BOX_FORM } from '../../planner/topology/catalogue/machines.js';
import { nicModels } from '../../planner/topology/catalogue/nics.js';
import { nvLinkGBps } from '../../planner/topology/bandwidths.js';
import { formatGBps } from '../../planner/topology/view/format.js';
import { print, printJson } from '../output.js';

/** `tccl topo list`. */
export function list(options: { readonly json?: boolean }): void {
  if (options.json === true) {
    printJson(
      {
        machines: machines.map(({ name, description, aliases }) => ({ name, description, aliases })),
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
  for (const { name, description } of machines) print(`  ${name.padEnd(18)}${description}`);
  print(`  ${PCIE_BOX_FORM}: a server for PCIe cards`, '');
  print(`GPUs${' '.repeat(12)}sm  PCIe  NVLinks`);
  for (const { id, sm, pciGeneration, nvlink, nvlinks, c2c } of gpuModels) {
    const links =
      nvlinks === 0
        ? '-'
        : `${nvlinks} (${formatGBps(nvlinks * nvLinkGBps(sm))} GB/s)${nvlink === 'pair' ? ' over a bridge' : ''}`;
    const chip = c2c === undefined ? '' : `, C2C ${formatGBps((c2c.bandwidthMBps * c2c.count) / 1000)} GB/s`;
    print(`  ${id.padEnd(12)}${String(sm).padStart(4)}  Gen${pciGeneration}  ${links}${chip}`);
  }
  print('', 'Network cards');
  for (const { id, speedMbps, pciGeneration } of nicModels)
    print(`  ${id.padEnd(14)}${String(speedMbps / 1000).padStart(4)} Gb/s  Gen${pciGeneration}`);
  print('', 'CPUs');
  for (const { id, name } of cpuModels) print(`  ${id.padEnd(14)}  ${name}`);
}
