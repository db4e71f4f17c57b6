/** A NUMA node of a topology file: the numbers of its devices, and its NICs by name and Mbit/s. */
export interface MadeNode {
  readonly devs: readonly number[];
  readonly nics?: Readonly<Record<string, number>>;
}

/** The text of a topology file: PCI devices right below their NUMA nodes. */
export function madeTopology(nodes: readonly MadeNode[]): string {
  let devices = 0;
  let nets = 0;
  const busId = (): string => `0000:${(++devices).toString(16).padStart(2, '0')}:00.0`;
  const pci = (deviceClass: string, content: string): string =>
    `<pci busid="${busId()}" class="${deviceClass}" vendor="0" device="0" subsystem_vendor="0" subsystem_device="0" link_speed="16.0 GT/s PCIe" link_width="16">${content}</pci>`;
  const cpus = nodes.map(({ devs, nics = {} }, node) => {
    const gpus = devs.map((dev) => pci('0x030200', `<gpu dev="${dev}" sm="0" rank="${dev}" gdr="0"/>`));
    const cards = Object.entries(nics).map(([name, speed]) =>
      pci(
        '0x020000',
        `<nic><net name="${name}" dev="${nets++}" speed="${speed}" port="0" latency="0" guid="0x${nets.toString(16)}" maxconn="65536" gdr="0"/></nic>`,
      ),
    );
    return `<cpu numaid="${node}" affinity="${node === 0 ? '0000000f' : '000000f0'}" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">${[...gpus, ...cards].join('')}</cpu>`;
  });
  return `<system version="1">${cpus.join('')}</system>\n`;
}

/** The text of a topology file: two GPUs with NVLinks, each below a switch with a NIC of its own, `rail0` and `rail1`. */
export function madeNvLinkPair(): string {
  const pci = (busId: string, deviceClass: string, content: string): string =>
    `<pci busid="0000:${busId}:00.0" class="${deviceClass}" link_speed="16.0 GT/s PCIe" link_width="16">${content}</pci>`;
  const branches = [0, 1].map((dev) => {
    const [bridge, gpu, nic] = [`${dev}1`, `${dev}2`, `${dev}3`];
    const nvLink = `<nvlink target="0000:${1 - dev}2:00.0" count="4" tclass="0x030200"/>`;
    const net = `<net name="rail${dev}" dev="${dev}" speed="25000" port="0" latency="0" guid="0x${dev + 1}" maxconn="65536" gdr="1"/>`;
    return pci(
      bridge,
      '0x060400',
      pci(gpu, '0x030200', `<gpu dev="${dev}" sm="90" rank="${dev}" gdr="1">${nvLink}</gpu>`) +
        pci(nic, '0x020000', `<nic>${net}</nic>`),
    );
  });
  return `<system version="1"><cpu numaid="0" affinity="0000000f" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">${branches.join('')}</cpu></system>\n`;
}
