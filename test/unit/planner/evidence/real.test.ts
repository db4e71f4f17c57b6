import { expect, it } from 'vitest';
import { InputError } from '../../../../src/errors.js';
import { evidenceIn } from '../../../../src/planner/evidence/facts.js';
import { machineOf } from '../../../../src/planner/evidence/machine-of-tools.js';
import { parseHardware } from '../../../../src/planner/topology/catalogue/hardware.js';
import { descendants } from '../../../../src/planner/topology/xml/tree.js';

/** Outputs as people publish them: short forms of real ones, in the layout of the tool, and the machine that each is. */
interface Published {
  readonly name: string;
  readonly lines: readonly string[];
  readonly hardware?: string;
  /** GPUs, their compute capability, network cards, and whether there are NVSwitches, by host. */
  readonly hosts?: readonly (readonly [count: number, gpus: number, sm: string, nets: number, isSwitched: boolean])[];
  /** Text of a note or an error. */
  readonly says?: string;
}

const list = (count: number, product: string) =>
  Array.from({ length: count }, (_, gpu) => `GPU ${gpu}: ${product} (UUID: GPU-0${gpu}a4d58e-84d1-f5cd-38ff-49500089c75c)`);

const published: readonly Published[] = [
  {
    name: 'lstopo --of xml of hwloc 3 on a DGX-2: one of its trees',
    lines: [
      '<?xml version="1.0" encoding="UTF-8"?>',
      '<topology version="3.0">',
      '<object type="Machine" os_index="0" gp_index="1"><info name="Architecture" value="x86_64"/>',
      '<object type="Package" os_index="0" gp_index="3"><object type="NUMANode" os_index="0" gp_index="7"/>',
      '<object type="Bridge" gp_index="710" bridge_type="0-1" depth="0" bridge_pci="0000:[29-42]">',
      '<object type="Bridge" gp_index="526" bridge_type="1-1" depth="1" bridge_pci="0000:[2c-3c]" pci_busid="0000:29:00.0" pci_type="0604 [8086:2030] [8086:0000] 04 00" pci_link_speed="15.753846">',
      '<object type="Bridge" gp_index="411" bridge_type="1-1" depth="2" bridge_pci="0000:[30-3c]" pci_busid="0000:2c:00.0" pci_type="0604 [10b5:9797] [10b5:8747] b0 00" pci_link_speed="15.753846">',
      '<object type="Bridge" gp_index="590" bridge_type="1-1" depth="3" bridge_pci="0000:[32-36]" pci_busid="0000:30:04.0" pci_type="0604 [10b5:9797] [10b5:8747] b0 00" pci_link_speed="15.753846">',
      '<object type="PCIDev" gp_index="581" pci_busid="0000:34:00.0" pci_type="0302 [10de:1db8] [10de:131d] a1 00" pci_link_speed="15.753846"/>',
      '</object>',
      '<object type="Bridge" gp_index="591" bridge_type="1-1" depth="3" bridge_pci="0000:[37-3b]" pci_busid="0000:30:08.0" pci_type="0604 [10b5:9797] [10b5:8747] b0 00" pci_link_speed="15.753846">',
      '<object type="PCIDev" gp_index="669" pci_busid="0000:39:00.0" pci_type="0302 [10de:1db8] [10de:131d] a1 00" pci_link_speed="15.753846"/>',
      '</object></object></object></object></object></object></topology>',
    ],
    hosts: [[1, 2, '70', 0, false]],
    says: 'there is no network card',
  },
  {
    name: 'the excerpt of lstopo in the guide of GPUDirect Storage, cut with dots, from a DGX A100',
    lines: [
      '<object type="Bridge" gp_index="867" bridge_type="1-1" depth="2" bridge_pci="0000:[02-13]" pci_busid="0000:01:00.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">',
      '<info name="PCIVendor" value="Broadcom / LSI"/>',
      '<object type="Bridge" gp_index="843" bridge_type="1-1" depth="3" bridge_pci="0000:[03-09]" pci_busid="0000:02:00.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">',
      '<object type="PCIDev" gp_index="878" pci_busid="0000:07:00.0" pci_type="0302 [10de:20b2] [10de:1463] a1" pci_link_speed="31.507692">',
      '<object type="OSDev" gp_index="1017" name="opencl0d0" subtype="OpenCL" osdev_type="5">',
      '<info name="GPUModel" value="NVIDIA A100-SXM4-80GB"/>',
      '...',
      '<object type="PCIDev" gp_index="824" pci_busid="0000:0c:00.0" pci_type="0207 [15b3:101b] [15b3:0007] 00" pci_link_speed="31.507692">',
      '<object type="OSDev" gp_index="1011" name="mlx5_0" osdev_type="3">',
    ],
    hosts: [[1, 1, '80', 1, false]],
  },
  {
    name: 'lstopo of a cluster node with two GPUs and InfiniBand, with --hardware',
    lines: [
      'janeh@node83:~$ lstopo',
      'Machine (252GB total)',
      '  Package L#0',
      '    NUMANode L#0 (P#0 126GB)',
      '    L3 L#0 (45MB)',
      '      L2 L#0 (256KB) + L1d L#0 (32KB) + L1i L#0 (32KB) + Core L#0',
      '        PU L#0 (P#0)',
      '        PU L#1 (P#36)',
      '    HostBridge',
      '      PCIBridge',
      '        PCIBridge',
      '          PCIBridge',
      '            PCI 04:00.0 (3D)',
      '              CoProc(CUDA) "cuda0"',
      '              GPU "nvml0"',
      '          PCIBridge',
      '            PCI 07:00.0 (3D)',
      '              CoProc(CUDA) "cuda1"',
      '          PCIBridge',
      '            PCI 08:00.0 (InfiniBand)',
      '              Net "hsi0"',
      '              OpenFabrics "mlx5_0"',
      '      PCIBridge',
      '        PCIBridge',
      '          PCI 0b:00.0 (VGA)',
      '  Package L#1',
      '    NUMANode L#1 (P#1 126GB)',
    ],
    hardware: '2 x V100 PCIe, 1 x 100G NIC, Broadwell',
    hosts: [[1, 2, '70', 1, false]],
  },
  {
    name: 'lstopo of a virtual machine, whose GPUs nothing names',
    lines: [
      '  HostBridge',
      '    PCI 00:03.0 (Ethernet)',
      '      Net "eth0"',
      '    PCI 00:1d.0 (VGA)',
      '      CoProc(CUDA) "cuda0"',
    ],
    says: 'nothing names the model of the GPUs: add the output of nvidia-smi -L',
  },
  {
    name: 'lspci -tv with virtual functions of a ConnectX-5 and V100 PCIe',
    lines: [
      '-+-[0000:d7]-+-05.0  Intel Corporation Sky Lake-E VT-d',
      ' +-[0000:57]-+-00.0-[58-63]----00.0-[59-63]--+-04.0-[5a-5b]--+-00.0  Mellanox Technologies MT27800 Family [ConnectX-5]',
      ' |           |                               |               +-03.4  Mellanox Technologies MT27800 Family [ConnectX-5 Virtual Function]',
      ' |           |                               |               \\-04.1  Mellanox Technologies MT27800 Family [ConnectX-5 Virtual Function]',
      ' |           |                               +-08.0-[5c-5f]----00.0  NVIDIA Corporation GV100GL [Tesla V100 PCIe 32GB]',
      ' |           |                               \\-0c.0-[60-63]----00.0  NVIDIA Corporation GV100GL [Tesla V100 PCIe 32GB]',
      ' \\-[0000:00]-+-00.0  Intel Corporation Sky Lake-E DMI3 Registers',
    ],
    hosts: [[1, 2, '70', 1, false]],
    says: 'all 1 RDMA card are connected',
  },
  {
    name: 'lspci -tv in a note: a GPU and its card below one root',
    lines: [
      '```text',
      '$ lspci -tv',
      '-+-[0000:16]-+-00.0-[17]----00.0  NVIDIA Corporation GH100 [H100 SXM5 80GB]',
      ' |           \\-01.0-[18]----00.0  Mellanox Technologies MT2910 Family [ConnectX-7]',
      ' \\-[0000:96]-+-00.0-[97]----00.0  NVIDIA Corporation GH100 [H100 SXM5 80GB]',
      '             \\-01.0-[98]----00.0  Mellanox Technologies MT2910 Family [ConnectX-7]',
      '```',
    ],
    hosts: [[1, 2, '90', 2, true]],
    says: 'NUMA nodes are those of the bus ids',
  },
  {
    name: 'lspci -nn | grep nvidia of four H100, which no machine of the catalogue has',
    lines: ['06', '0c', '46', '4c'].map(
      (bus) => `${bus}:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)`,
    ),
    says: 'no machine of the catalogue has 4 x H100 SXM (dgx-h100 has 8)',
  },
  {
    name: 'labels of a PowerEdge with eight H100',
    lines: [
      '                    nvidia.com/gpu.count=8',
      '                    nvidia.com/gpu.deploy.dcgm=true',
      '                    nvidia.com/gpu.family=hopper',
      '                    nvidia.com/gpu.machine=PowerEdge-XE9680',
      '                    nvidia.com/gpu.memory=81559',
      '                    nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3',
    ],
    hosts: [[1, 8, '90', 8, true]],
    says: 'the machine is dgx-h100 (8 x H100 SXM)',
  },
  {
    name: 'labels of a node in JSON, with an instance type',
    lines: [
      '{ "kind": "Node", "metadata": { "labels": {',
      '  "kubernetes.io/hostname": "ip-10-0-1-7",',
      '  "node.kubernetes.io/instance-type": "p4d.24xlarge",',
      '  "nvidia.com/gpu.count": "8",',
      '  "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB" } } }',
    ],
    hosts: [[1, 8, '80', 4, true]],
    says: 'aws-p4d, by its name',
  },
  {
    name: 'labels of a node with a GPU that the catalogue lacks',
    lines: ['nvidia.com/gpu.machine=PowerEdge-R730', 'nvidia.com/gpu.count=2', 'nvidia.com/gpu.product=Tesla-P100-PCIE-12GB'],
    says: 'the catalogue has no GPU Tesla-P100-PCIE-12GB',
  },
  {
    name: 'lines of slurm.conf for two kinds of nodes',
    lines: [
      'NodeName=h[01-04] Sockets=2 CoresPerSocket=56 Gres=gpu:h100:8 State=UNKNOWN',
      'NodeName=a[1-2] Sockets=2 CoresPerSocket=64 Gres=gpu:a100:8 State=UNKNOWN',
    ],
    hosts: [
      [4, 8, '90', 8, true],
      [2, 8, '80', 8, true],
    ],
  },
  {
    name: 'scontrol show node of two equal nodes',
    lines: [1, 2].flatMap((node) => [
      `NodeName=gpu-st-p5-${node} Arch=x86_64 CoresPerSocket=96`,
      '   CPUAlloc=0 CPUEfctv=192 CPUTot=192 CPULoad=0.10',
      '   Gres=gpu:h100:8(S:0-1)',
      '   CfgTRES=cpu=192,mem=2T,billing=192,gres/gpu=8',
      `   InstanceType=p5.48xlarge`,
      '',
    ]),
    hosts: [[2, 8, '90', 8, true]],
  },
  {
    name: 'sinfo of an Azure node with one A100',
    lines: ['NODELIST GRES', 'azure-[1-3] gpu:nvidia_a100_80gb_pcie:4(S:0)'],
    hosts: [[3, 4, '80', 1, false]],
    says: 'azure-nc-a100-v4',
  },
  {
    name: 'a job without a model',
    lines: ['#!/bin/bash', '#SBATCH --nodes=2', '#SBATCH --gres=gpu:8', 'srun python train.py'],
    says: 'nothing names the model of the 8 GPUs (machines with 8 GPUs: dgx-1v, dgx-a100',
  },
  {
    name: 'nvidia-smi -L with parts of GPUs (MIG)',
    lines: list(8, 'NVIDIA A100-SXM4-80GB').flatMap((line) => [line, '  MIG 1g.10gb     Device  0: (UUID: MIG-a686709d)']),
    hosts: [[1, 8, '80', 8, true]],
  },
  {
    name: 'nvidia-smi -L and ibdev2netdev with ports that are down',
    lines: [
      ...list(8, 'NVIDIA H200'),
      ...Array.from({ length: 10 }, (_, nic) => `mlx5_${nic} port 1 ==> ib${nic} (${nic < 8 ? 'Up' : 'Down'})`),
    ],
    hosts: [[1, 8, '90', 8, true]],
  },
  { name: 'product names', lines: ['4 x DGX H100'], hosts: [[4, 8, '90', 8, true]] },
  {
    name: 'dmidecode',
    lines: ['System Information', '\tManufacturer: NVIDIA', '\tProduct Name: DGXA100 920-23687-2530-000'],
    hosts: [[1, 8, '80', 8, true]],
  },
  {
    name: 'two hosts in one paste, with prompts',
    lines: [
      'root@gpu1:~# nvidia-smi -L',
      ...list(8, 'NVIDIA B200'),
      '[root@gpu2 ~]# nvidia-smi -L',
      ...list(8, 'NVIDIA H200'),
      '[root@gpu2 ~]# exit',
    ],
    hosts: [
      [1, 8, '100', 8, true],
      [1, 8, '90', 8, true],
    ],
  },
  {
    name: 'two hosts by pdsh',
    lines: [...list(8, 'NVIDIA H200').map((line) => `n1: ${line}`), ...list(8, 'NVIDIA H200').map((line) => `n2: ${line}`)],
    hosts: [[2, 8, '90', 8, true]],
  },
  {
    name: 'one rank by mpirun -tag-output',
    lines: list(8, 'NVIDIA H200').map((line) => `[1,0]<stdout>:${line}`),
    hosts: [[1, 8, '90', 8, true]],
  },
];

it.each(published)('$name', ({ lines, hardware, hosts, says }) => {
  const made = () =>
    (evidenceIn({ text: lines.join('\n'), fileName: 'a.txt' }) ?? []).map((host) => ({
      count: host.count,
      ...machineOf(host, hardware === undefined ? undefined : parseHardware(hardware)),
    }));
  if (hosts === undefined) {
    expect(made).toThrow(InputError);
    expect(made).toThrow(says);
    return;
  }
  const machines = made();
  expect(
    machines.map(({ count, root }) => {
      const elements = [...descendants(root)];
      const gpus = elements.filter(({ name }) => name === 'gpu');
      const nets = elements.filter(({ name }) => name === 'net');
      const isSwitched = elements.some((element) => element.attributes.get('tclass') === '0x068000');
      return [count, gpus.length, gpus[0]?.attributes.get('sm'), nets.length, isSwitched];
    }),
  ).toEqual(hosts);
  if (says !== undefined) expect(machines.flatMap(({ notes }) => notes).join('\n')).toContain(says);
});
