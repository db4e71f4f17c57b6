import fc from 'fast-check';

/**
 * Random machines that could exist: up to four NUMA domains of one kind of CPU, PCI trees, GPUs of one kind, NICs, and
 * NVLinks to switches or between pairs, the same from both sides. As XML with all that NCCL needs.
 */
export const randomMachine: fc.Arbitrary<string> = fc
  .record({
    cpuKind: fc.constantFrom(
      'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"',
      'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207"',
      'arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1"',
      'arch="arm64"',
      'arch="ppc64"',
    ),
    sm: fc.constantFrom(60, 70, 75, 80, 86, 90, 100),
    fabric: fc.constantFrom('none', 'switch', 'pairs', 'random'),
    c2c: fc.boolean(),
    /** For each pair of GPUs a number of NVLinks, where the fabric is random. */
    nvLinks: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 28, maxLength: 28 }),
    cpus: fc.array(fc.array(pciTree(3), { maxLength: 3 }), { minLength: 1, maxLength: 4 }),
  })
  .map(({ cpus, ...kind }) => new Writer(kind).machine(cpus))
  .filter((xml) => xml.includes('<gpu'));

type Tree =
  | { readonly kind: 'gpu'; readonly link: string }
  | { readonly kind: 'nic'; readonly link: string; readonly speedMbps: number; readonly gdr: boolean }
  | { readonly kind: 'switch'; readonly link: string; readonly below: readonly Tree[] };

interface Kind {
  readonly cpuKind: string;
  readonly sm: number;
  readonly fabric: string;
  readonly c2c: boolean;
  readonly nvLinks: readonly number[];
}

function pciTree(depth: number): fc.Arbitrary<Tree> {
  const link = fc
    .tuple(fc.constantFrom('8.0', '16.0', '32.0'), fc.constantFrom(4, 8, 16))
    .map(([speed, width]) => `link_speed="${speed} GT/s PCIe" link_width="${width}"`);
  const gpu = fc.record({ kind: fc.constant('gpu' as const), link });
  const nic = fc.record({
    kind: fc.constant('nic' as const),
    link,
    speedMbps: fc.constantFrom(25000, 100000, 200000, 400000),
    gdr: fc.boolean(),
  });
  if (depth === 0) return fc.oneof(gpu, nic);
  return fc.oneof(
    gpu,
    nic,
    fc.record({
      kind: fc.constant('switch' as const),
      link,
      below: fc.array(pciTree(depth - 1), { minLength: 1, maxLength: 3 }),
    }),
  );
}

const maxGpus = 8;

class Writer {
  readonly #kind: Kind;
  #devices = 0;
  #gpus = 0;
  #nics = 0;

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  machine(cpus: readonly (readonly Tree[])[]): string {
    // Numbers of GPUs and their bus ids are needed for NVLinks, so trees are written twice: bus ids stay the same.
    const text = cpus.map(
      (trees, numaId) =>
        `<cpu numaid="${numaId}" affinity="${(0xf << (4 * numaId)).toString(16)}" ${this.#kind.cpuKind}>${trees.map((tree) => this.#tree(tree)).join('')}</cpu>`,
    );
    const busIds = [...text.join('').matchAll(/busid="([^"]+)" class="0x030200"/g)].map(([, busId]) => busId ?? '');
    return `<system version="1">${text.join('')}</system>`.replaceAll(/NVLINKS(\d)/g, (_, gpu: string) =>
      this.#nvLinks(Number(gpu), busIds),
    );
  }

  #tree(tree: Tree): string {
    const busId = `0000:${(++this.#devices).toString(16).padStart(2, '0')}:00.0`;
    switch (tree.kind) {
      case 'switch':
        return `<pci busid="${busId}" class="0x060400" ${tree.link}>${tree.below.map((child) => this.#tree(child)).join('')}</pci>`;
      case 'nic': {
        const dev = this.#nics++;
        return `<pci busid="${busId}" class="0x020700" ${tree.link}><nic><net name="mlx5_${dev}" dev="${dev}" speed="${tree.speedMbps}" port="1" guid="0x${(dev + 1).toString(16)}" maxconn="131072" gdr="${tree.gdr ? 1 : 0}"/></nic></pci>`;
      }
      case 'gpu': {
        if (this.#gpus === maxGpus) return '';
        const gpu = this.#gpus++;
        const c2c = this.#kind.c2c ? '<c2c bw="43125" count="8"/>' : '';
        return `<pci busid="${busId}" class="0x030200" ${tree.link}><gpu dev="${gpu}" rank="${gpu}" sm="${this.#kind.sm}" gdr="1">NVLINKS${gpu}${c2c}</gpu></pci>`;
      }
    }
  }

  #nvLinks(gpu: number, busIds: readonly string[]): string {
    if (this.#kind.fabric === 'switch') return '<nvlink target="fffffff:ffff:ff" count="6" tclass="0x068000"/>';
    return busIds
      .map((busId, other) => {
        const count = other === gpu ? 0 : this.#linksBetween(Math.min(gpu, other), Math.max(gpu, other));
        return count === 0 ? '' : `<nvlink target="${busId}" count="${count}" tclass="0x030200"/>`;
      })
      .join('');
  }

  #linksBetween(low: number, high: number): number {
    if (this.#kind.fabric === 'pairs') return high === low + 1 && low % 2 === 0 ? 4 : 0;
    if (this.#kind.fabric === 'random') return this.#kind.nvLinks[(high * (high - 1)) / 2 + low] ?? 0;
    return 0;
  }
}
