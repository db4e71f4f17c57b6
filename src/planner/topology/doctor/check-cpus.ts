import { interCpuGBps } from '../bandwidths.js';
import { parseInteger } from '../c-numbers.js';
import { CpuArch, CpuModel, CpuVendor } from '../system.js';
import { childrenNamed, type XmlElement } from '../xml/tree.js';
import { formatGBps } from '../format.js';
import { rulesOf } from '../../versions/rules.js';
import { type Inventory } from './inventory.js';

const architectures = ['x86_64', 'arm64', 'ppc64'];
const vendors = ['GenuineIntel', 'AuthenticAMD', 'CentaurHauls', '  Shanghai  '];

/** Checks the attributes of `<cpu>` elements. */
export function checkCpus(inventory: Inventory): void {
  for (const cpu of inventory.cpus) {
    checkArchitecture(inventory, cpu);
    checkModel(inventory, cpu);
    checkNuma(inventory, cpu);
    checkAffinity(inventory, cpu);
  }
}

function checkArchitecture({ cpus, findings }: Inventory, cpu: XmlElement): void {
  const missing = missingAttributes(cpu);
  if (missing.length > 0) {
    const twin = cpus.find((other) => missingAttributes(other).length === 0);
    const values =
      twin === undefined
        ? 'arch="x86_64" vendor="…" familyid="…" modelid="…" as NCCL_TOPO_DUMP_FILE shows them'
        : ['arch', 'vendor', 'familyid', 'modelid']
            .filter((name) => twin.attributes.has(name))
            .map((name) => `${name}="${twin.attributes.get(name) ?? ''}"`)
            .join(' ');
    findings.add(cpu, {
      code: 'cpu-arch-missing',
      severity: 'warning',
      problem: `${missing.join(', ')} missing`,
      consequence:
        'NCCL fills it in only above devices that it finds itself: a job on some of the GPUs fails with "Attribute arch of node cpu not found": 0 GB/s',
      remedy: `add ${values}`,
    });
    return;
  }
  const arch = cpu.attributes.get('arch') ?? '';
  const vendor = cpu.attributes.get('vendor') ?? '';
  const unknownArch = !architectures.some((name) => arch.startsWith(name));
  if (!unknownArch && (!arch.startsWith('x86_64') || vendors.some((name) => vendor.startsWith(name)))) return;
  const couldBe = vendor.includes('AMD') ? interCpuGBps({ arch: CpuArch.X86, vendor: CpuVendor.AMD, model: -1 }) : undefined;
  findings.add(cpu, {
    code: 'cpu-unknown',
    severity: 'warning',
    problem: unknownArch ? `arch="${arch}" is none that NCCL knows` : `vendor="${vendor}" is none that NCCL knows`,
    consequence: `NCCL takes the link between sockets for ${formatGBps(5000)} GB/s${
      couldBe === undefined ? '' : `, where it has about ${formatGBps(couldBe)}`
    }, and prefers paths across it`,
    ...(couldBe === undefined ? {} : { gbps: { is: 5000, couldBe } }),
    remedy: unknownArch
      ? `write arch="${architectures.join('" or "')}"`
      : 'write the vendor of CPUID: GenuineIntel or AuthenticAMD',
  });
}

/** Models of family 6 that are newer than Emerald Rapids, although their numbers are lower: NCCL compares the numbers. */
const newerThanEmerald: ReadonlyMap<string, string> = new Map([
  ['173', 'Granite Rapids'],
  ['174', 'Granite Rapids-D'],
  ['175', 'Sierra Forest'],
]);

function checkModel({ cpus, gpus, findings, parameters }: Inventory, cpu: XmlElement): void {
  const name = newerThanEmerald.get(cpu.attributes.get('modelid') ?? '');
  if (name === undefined || cpu.attributes.get('familyid') !== '6' || cpu.attributes.get('vendor') !== 'GenuineIntel') return;
  const rules = rulesOf(parameters);
  if (rules.newerIntelCpus === 'granite rapids') return;
  const [older, taken] =
    rules.newerIntelCpus === 'as skylake' ? [CpuModel.INTEL_SKL, 'Skylake'] : [CpuModel.INTEL_SRP, 'Sapphire Rapids'];
  const intel = (model: number) => interCpuGBps({ arch: CpuArch.X86, vendor: CpuVendor.INTEL, model }, rules);
  const [is, couldBe] = [intel(older), intel(CpuModel.INTEL_ERP)];
  // NVLinks carry what would cross the sockets.
  const crosses = cpus.length > 1 && !gpus.some(({ element }) => element.children.some((child) => child.name === 'nvlink'));
  findings.add(cpu, {
    code: 'cpu-misread',
    severity: crosses ? 'warning' : 'info',
    problem: `this CPU is ${name}, which NCCL ${parameters.ncclVersion} takes for ${taken}`,
    consequence: `the search counts on ${formatGBps(is)} GB/s between sockets, since 2.31.2 on ${formatGBps(couldBe)}${
      crosses ? ', and may make fewer channels' : '; few or no data cross them here'
    }`,
    gbps: { is, couldBe },
    remedy: 'NCCL 2.31.2 or newer; or modelid="207" in a file for NCCL_TOPO_FILE, which is Emerald Rapids',
  });
}

function missingAttributes(cpu: XmlElement): string[] {
  const arch = cpu.attributes.get('arch');
  if (arch === undefined) return ['arch'];
  if (!arch.startsWith('x86_64')) return [];
  const vendor = cpu.attributes.get('vendor');
  if (vendor === undefined) return ['vendor'];
  const needsModel = !vendor.startsWith('AuthenticAMD') && vendors.some((name) => vendor.startsWith(name));
  return needsModel ? ['familyid', 'modelid'].filter((name) => !cpu.attributes.has(name)) : [];
}

function checkNuma({ findings, graph }: Inventory, cpu: XmlElement): void {
  const numa = cpu.attributes.get('numaid');
  if (numa !== undefined && parseInteger(numa) !== -1) return;
  const node = graph?.system.cpus[0];
  const across = node === undefined ? undefined : interCpuGBps(node);
  findings.add(cpu, {
    code: 'numa-unknown',
    severity: 'warning',
    problem: numa === undefined ? 'numaid missing' : `numaid="${numa}": the kernel does not know the NUMA node`,
    consequence: `all devices below it count as near each other; where they are on two sockets, NCCL expects the bandwidth of PCI, and gets that of the link between sockets${
      across === undefined || across >= 5000 ? '' : ` (about ${formatGBps(across)} GB/s)`
    }`,
    remedy: 'in a virtual machine, pin vCPUs and devices to virtual NUMA nodes, or write a file with one <cpu> per socket',
  });
}

function checkAffinity({ findings }: Inventory, cpu: XmlElement): void {
  const affinity = cpu.attributes.get('affinity');
  // NUMA nodes without cores (CXL, HBM) have no mask and no devices.
  if (affinity !== undefined && /[1-9a-fA-F]/.test(affinity)) return;
  if (childrenNamed(cpu, 'pci').length === 0 && childrenNamed(cpu, 'nic').length === 0) return;
  findings.add(cpu, {
    code: 'affinity-empty',
    severity: affinity === undefined ? 'info' : 'warning',
    problem: affinity === undefined ? 'affinity missing' : `affinity="${affinity}" names no core`,
    consequence:
      'NCCL does not bind its threads: proxies on another socket read and write memory at the bandwidth of the link between sockets',
    remedy: 'write the mask of /sys/devices/system/node/nodeN/cpumap; missing altogether, NCCL fills it in',
  });
}
