import type { XmlNote } from '../xml/notes.js';
import { isWholeInteger, parseBigInteger } from '../c-numbers.js';
import { childNamed, childrenNamed, descendants, shorten, type XmlElement } from '../xml/tree.js';
import { integerAttributes } from '../xml/validate.js';
import { type Finding, type Findings, placeOf } from './finding.js';
import { deviceKey, devicesOf, gpuName, isInUse, type Inventory } from './inventory.js';

/** Compares the file with the reading of NCCL's own parser. */
export function checkNotes(notes: readonly XmlNote[], findings: Findings): void {
  for (const { effect, message, count, line, column } of notes) {
    findings.add(
      { element: 'the text', line, column },
      { ...noteTexts[effect], problem: `${message}${count > 1 ? ` (${count} times)` : ''}` },
    );
  }
}

const noteTexts = {
  refuse: {
    code: 'nccl-refuses',
    severity: 'error',
    consequence: 'as NCCL_TOPO_FILE it makes every communicator fail with ncclInternalError: 0 GB/s',
    remedy:
      "tccl topo complete FILE -o NEW writes the same in the form of NCCL's own dump; what is too long or too many, shorten",
  },
  misread: {
    code: 'nccl-misreads',
    severity: 'warning',
    consequence: 'NCCL continues with a different value than intended',
    remedy: 'write attributes with one space between them, and values without & and quotes',
  },
  ignore: {
    code: 'nccl-misreads',
    severity: 'info',
    consequence: 'NCCL goes on without it',
    remedy: 'remove it, or correct its name and place',
  },
} as const;

/** Checks for devices that NCCL does not see, or confuses. */
export function checkDevices(inventory: Inventory): void {
  const { gpus, findings } = inventory;
  if (!gpus.some(({ element }) => element.attributes.has('rank'))) {
    findings.add(inventory.root, {
      code: 'skeleton',
      severity: 'info',
      problem: gpus.length === 0 ? 'the file has no GPU' : `no GPU of the file has a rank (it names ${gpus.length})`,
      consequence: 'NCCL takes it as a tree to hang the devices in that it finds; paths cannot be computed from it alone',
      remedy: 'tccl topo complete FILE --hardware "8 x H100 SXM, 8 x 400G NIC" adds what the machine has',
    });
  } else {
    for (const gpu of gpus) {
      if (gpu.element.attributes.has('rank')) continue;
      findings.add(gpu.element, {
        code: 'gpu-unused',
        severity: 'info',
        problem: 'it has no rank, while other GPUs have',
        consequence: 'NCCL leaves it out, with all else at its PCI device',
        remedy: 'give it a rank if the job uses it',
      });
    }
  }
  checkHidden(inventory);
  checkTwice(inventory);
  checkNumbers(inventory);
}

/** Checks for texts in place of numbers, which NCCL reads up to the last digit, or as 0. */
function checkNumbers({ root, findings }: Inventory): void {
  for (const element of descendants(root)) {
    for (const name of integerAttributes(element.name)) {
      const text = element.attributes.get(name);
      // Hashes are read in base 16; link_width has a finding of its own.
      if (text === undefined || isWholeInteger(text) || name === 'host_hash' || name === 'guid' || name === 'link_width')
        continue;
      findings.add(element, {
        code: 'nccl-misreads',
        severity: 'warning',
        problem: `${name}="${shorten(text)}" is no whole number: NCCL reads ${parseBigInteger(text, 0)}`,
        consequence: 'NCCL continues with a different value than intended',
        remedy: `write ${name} as a whole number`,
      });
    }
  }
}

function checkHidden({ pcis, findings }: Inventory): void {
  for (const pci of pcis) {
    if (childrenNamed(pci.element, 'nic').length === 0 || pci.children.length === 0) continue;
    findings.add(pci.element, {
      code: 'devices-hidden',
      severity: pci.children.some(isInUse) ? 'error' : 'warning',
      problem: `it holds a <nic> and ${pci.children.length} <pci>`,
      consequence: pci.children.some(isInUse)
        ? 'NCCL looks at the <nic> only: GPUs below are not in its graph, and their NVLinks make it fail (could not find DEV): 0 GB/s'
        : 'NCCL looks at the <nic> only and does not see what is below',
      remedy: 'give the card a <pci> of its own beside the others, of class 0x020700, and put the <nic> there',
    });
  }
}

function checkTwice({ cpus, pcis, gpus, nets, findings }: Inventory): void {
  const byKey = new Map<string, XmlElement>();
  for (const { element, key } of pcis) {
    if (!element.attributes.has('busid')) continue;
    const first = byKey.get(key);
    if (first === undefined) byKey.set(key, element);
    else {
      findings.add(element, {
        code: 'bus-id-twice',
        severity: 'warning',
        problem: `its bus id is that of ${placeOf(first).element} on line ${first.line}`,
        consequence: 'what NCCL looks up by bus id (NVLinks, switch links, completion) it finds at the first only',
        remedy: 'give it the bus id that lspci shows; an invented one that is unique does as well for a switch',
      });
    }
  }
  checkNumberTwice(findings, nets, 'dev', (number, line) => ({
    code: 'net-number-twice',
    severity: 'warning',
    problem: `network device ${number} is on line ${line} too`,
    consequence: 'NCCL finds paths to the first only, so GPUs near this one may use a far one',
    remedy: 'number network devices as the plugin does: every one once',
  }));
  // Parts of one split GPU share its number.
  const whole = gpus.filter(({ element, pci }) => element === childNamed(pci.element, 'gpu'));
  checkNumberTwice(
    findings,
    whole.map(({ element, pci }) => ({ element, cpu: pci.cpu })),
    'dev',
    (number, line) => ({
      code: 'gpu-number-twice',
      severity: 'warning',
      problem: `GPU ${number} is on line ${line} too`,
      consequence: 'a path over NVLink by way of this GPU is taken for one by way of the first, and a graph file cannot name it',
      remedy: 'number GPUs as nvidia-smi does: every one once',
    }),
  );
  checkNumberTwice(
    findings,
    cpus.map((cpu) => ({ element: cpu, cpu })),
    'numaid',
    (number, line) => ({
      code: 'cpu-number-twice',
      severity: 'warning',
      problem: `NUMA node ${number} is on line ${line} too`,
      consequence:
        'NCCL takes paths to this one for paths to the first: devices of both may count as near each other, or be bound to the wrong cores',
      remedy: 'number NUMA nodes as /sys/devices/system/node does: every one once',
    }),
  );
}

/** Elements of one host with the number that an earlier one has. */
function checkNumberTwice(
  findings: Findings,
  elements: readonly { readonly element: XmlElement; readonly cpu: XmlElement }[],
  attribute: string,
  finding: (number: string, firstLine: number) => Omit<Finding, 'places'>,
): void {
  const firsts = new Map<string, XmlElement>();
  for (const { element, cpu } of elements) {
    const number = element.attributes.get(attribute);
    if (number === undefined) continue;
    const key = deviceKey(cpu, number);
    const first = firsts.get(key);
    if (first === undefined) firsts.set(key, element);
    else findings.add(element, finding(number, first.line));
  }
}

/** Compares the file with its intended machine. */
export function checkAgainstMachine(inventory: Inventory, machine: XmlElement): void {
  const real = devicesOf(machine);
  const { findings } = inventory;
  const busIds = (list: readonly { readonly pci: { readonly key: string } | undefined }[]) =>
    new Set(list.map(({ pci }) => pci?.key.split(' ').at(-1) ?? ''));
  const realGpus = busIds(real.gpus);
  const realNics = busIds(real.nets);
  const fileGpus = busIds(inventory.gpus);
  for (const gpu of inventory.gpus) {
    const busId = gpu.pci.key.split(' ').at(-1) ?? '';
    if (realGpus.has(busId)) continue;
    findings.add(gpu.element, {
      code: 'gpu-not-there',
      severity: 'error',
      problem: `the machine has no GPU at ${busId}; it has ${[...realGpus].join(' ') || 'none'}`,
      consequence: 'NCCL never finds it: the GPUs that the machine does have are put elsewhere in the tree, with guessed links',
      remedy: 'write the bus ids that nvidia-smi --query-gpu=pci.bus_id shows, or take the file of another machine away',
    });
  }
  for (const { element, pci } of real.gpus) {
    const busId = pci.key.split(' ').at(-1) ?? '';
    const place = inventory.pcis.find(({ key }) => key.split(' ').at(-1) === busId);
    if (fileGpus.has(busId) || place !== undefined) continue;
    findings.add(undefined, {
      code: 'gpu-not-in-file',
      severity: 'warning',
      problem: `GPU ${element.attributes.get('dev') ?? '?'} of the machine, at ${busId}, has no place in the file`,
      consequence: 'NCCL adds it where /sys shows it, which may not fit the switches of the file',
      remedy: 'add a <pci> with its bus id below the switch and CPU where it is',
    });
  }
  for (const { element, pci } of inventory.nets) {
    const busId = pci?.key.split(' ').at(-1) ?? '';
    if (pci === undefined || realNics.has(busId)) continue;
    findings.add(element, {
      code: 'nic-not-there',
      severity: 'warning',
      problem: `the machine has no network card at ${busId}`,
      consequence: 'NCCL drops it, and cards that are there are put where /sys shows them',
      remedy: 'write the bus ids that the machine has (ls -l /sys/class/infiniband)',
    });
  }
}

/** Compares a graph file (NCCL_GRAPH_FILE) with the topology. */
export function checkGraph(inventory: Inventory, graphs: XmlElement, fileName: string): void {
  const devs = new Set(
    inventory.gpus
      .filter(({ element }) => element.attributes.has('rank'))
      .map(({ element }) => Number(element.attributes.get('dev') ?? -1)),
  );
  const missing = new Map<number, XmlElement>();
  for (const graph of childrenNamed(graphs, 'graph')) {
    for (const channel of childrenNamed(graph, 'channel')) {
      for (const gpu of childrenNamed(channel, 'gpu')) {
        // NCCL reads these numbers in base 16.
        const dev = Number.parseInt(gpu.attributes.get('dev') ?? '', 16);
        if (!devs.has(dev) && !missing.has(dev)) missing.set(dev, gpu);
      }
    }
  }
  for (const [dev, gpu] of missing) {
    inventory.findings.add(
      { ...placeOf(gpu), element: `${fileName}: ${placeOf(gpu).element}` },
      {
        code: 'graph-gpu-not-there',
        severity: 'error',
        problem: `the graph file uses GPU ${dev}, and the topology has ${inventory.gpus.map(gpuName).join(', ') || 'none'}`,
        consequence: 'NCCL fails with "Dev not found": 0 GB/s',
        remedy: 'unset NCCL_GRAPH_FILE (look in /etc/nccl.conf too) for jobs that do not use all GPUs',
      },
    );
  }
}
