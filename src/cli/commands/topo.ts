import { type Command, InvalidArgumentError, Option } from 'commander';
import { NCCL_HELP, TORCH_HELP } from '../version-options.js';
import { examples } from '../output.js';
import type { CompleteOptions } from '../topo/complete.js';
import type { DetectOptions } from '../topo/detect.js';
import type { DoctorOptions } from '../topo/doctor.js';
import type { ShowOptions } from '../topo/show.js';

const INPUT = 'XML file, output of nvidia-smi topo -m, - for the standard input, or a machine of the catalogue';
const MERGE_NICS =
  'join InfiniBand and RoCE ports into one device as NCCL does at its start: those of one card, or as NCCL_NET_MERGE_LEVEL and NCCL_NET_FORCE_MERGE say';
const HARDWARE = 'what the machine has where the file does not say: a line, or @FILE';

/** `tccl topo`: machines as NCCL sees them. */
export function register(program: Command): void {
  const topo = program
    .command('topo')
    .description('look at machines as NCCL sees them: topology files, the catalogue, this machine')
    .addHelpText(
      'after',
      examples(
        ['a file of a node, as a tree with bandwidths and a matrix of paths', 'tccl topo show topo.xml'],
        ['what is wrong with it', 'tccl topo doctor topo.xml'],
        ['this machine', 'tccl topo detect | tccl topo show -'],
        ['a cloud file without GPUs, completed', 'tccl topo complete ndv5-topo.xml --hardware "8 x H100 SXM, 8 x 400G NIC"'],
      ),
    );

  addShow(topo);
  addDoctor(topo);
  addComplete(topo);
  addDetect(topo);
  addList(topo);
}

function addShow(topo: Command): void {
  topo
    .command('show')
    .description('draw a machine: tree, matrix of path types, SVG, JSON')
    .argument('<file>', INPUT)
    .option('--hardware <description>', HARDWARE)
    .option('--svg <file>', 'draw it into this file too')
    .option('--json', 'print all that is known as JSON: boxes, wires, nodes, links, paths with hops')
    .option('--matrix', 'the whole matrix of paths, however wide')
    .option('--merge-nics', MERGE_NICS)
    .option('--nccl <version>', NCCL_HELP)
    .option('--torch <release>', TORCH_HELP)
    .addHelpText(
      'after',
      `${examples(
        ['a machine of the catalogue', 'tccl topo show dgx-h100'],
        ['a picture', 'tccl topo show topo.xml --svg topo.svg'],
        ['a file that holds the PCI tree only', 'tccl topo show ndv5-topo.xml --hardware "8 x H100 SXM, 8 x 400G NIC"'],
        ['with a variable of NCCL', 'NCCL_NVB_DISABLE=1 tccl topo show dgx-1v'],
      )}\nNumbers in the tree are GB/s of the link to the device above. NCCL's variables are read from the environment.`,
    )
    .action(async (file: string, options: ShowOptions) => {
      const { show } = await import('../topo/show.js');
      show(file, options);
    });
}

function addDoctor(topo: Command): void {
  topo
    .command('doctor')
    .description('find what is wrong with a topology: place, cost in GB/s, remedy')
    .argument('<file>', `${INPUT}, or a cluster file`)
    .option('--hardware <description>', HARDWARE)
    .option(
      '--machine <file>',
      'the machine that the file is meant for: a dump, or the root of its file system (/ is this one); names GPUs and cards that it does not have',
    )
    .option('--graph <file>', 'the NCCL_GRAPH_FILE that is used with it')
    .option(
      '--nodes <count>',
      'hosts of that kind that are checked together: variables, search, NICs (default: 2, or 1 without NICs)',
    )
    .option('--json', 'print the findings as JSON')
    .option('--nccl <version>', NCCL_HELP)
    .option('--torch <release>', TORCH_HELP)
    .addHelpText(
      'after',
      `${examples(
        ['a file before it goes to a cluster', 'tccl topo doctor topo.xml'],
        ['a virtual machine that is slow', 'NCCL_TOPO_DUMP_FILE=dump.xml mpirun … all_reduce_perf; tccl topo doctor dump.xml'],
        ['does the file fit this machine?', 'tccl topo doctor topo.xml --machine /'],
      )}\nExit code 1 when there is an error among the findings, else 0.`,
    )
    .action(async (file: string, options: DoctorOptions) => {
      const { doctor } = await import('../topo/doctor.js');
      process.exitCode = await doctor(file, options);
    });
}

function addComplete(topo: Command): void {
  topo
    .command('complete')
    .description('write a topology with what it misses: devices of a description or of a machine, ranks, attributes')
    .argument('<file>', INPUT)
    .option('--hardware <description>', HARDWARE)
    .option(
      '--machine <folder>',
      'the machine that has the devices, by the root of its file system (/ is this one): what NCCL makes of the file there',
    )
    .option('--merge-nics', MERGE_NICS)
    .option('-o, --output <file>', 'write it into this file instead of the standard output')
    .addHelpText(
      'after',
      examples(
        [
          'devices wherever the file has a place of their class',
          'tccl topo complete ndv5-topo.xml --hardware "8 x H100 SXM, 8 x 400G NIC" -o topo.xml',
        ],
        ['devices at bus ids', 'tccl topo complete skeleton.xml --hardware "2 x L40S at 0000:17:00.0 0000:65:00.0"'],
        [
          'with the GPUs and cards of this machine, as NCCL does with NCCL_TOPO_FILE',
          'tccl topo complete ndv5-topo.xml --machine /',
        ],
        ['a machine of the catalogue as a file', 'tccl topo complete dgx-a100 -o dgx-a100.xml'],
      ),
    )
    .action(async (file: string, options: CompleteOptions) => {
      const { complete } = await import('../topo/complete.js');
      complete(file, options);
    });
}

function addDetect(topo: Command): void {
  topo
    .command('detect')
    .description('write the topology of this machine, or of one whose /sys and /proc were copied into a folder')
    .option('--root <folder>', "root of the machine's file system", '/')
    .option('--ranks <count>', 'devices for <count> CPU ranks, below the NUMA nodes', positive)
    .addOption(
      new Option('--net <kind>', 'network devices: InfiniBand and RoCE where a port is active, else sockets; or one of both')
        .choices(['auto', 'ib', 'socket'])
        .default('auto'),
    )
    .option('-o, --output <file>', 'write it into this file instead of the standard output')
    .addHelpText(
      'after',
      examples(
        ['this machine as a tree', 'tccl topo detect | tccl topo show -'],
        ['with a device for each of 8 CPU ranks', 'tccl topo detect --ranks 8 -o topo.xml'],
        ['a machine from a copy of its /sys and /proc', 'tccl topo detect --root ./captured | tccl topo doctor -'],
      ),
    )
    .action(async (options: DetectOptions) => {
      const { detectTo } = await import('../topo/detect.js');
      detectTo(options);
    });
}

function addList(topo: Command): void {
  topo
    .command('list')
    .description('show the catalogue: machines, GPUs, network cards, CPUs')
    .argument('[machine]', 'show where the facts about this machine come from')
    .option('--json', 'print it as JSON')
    .addHelpText(
      'after',
      examples(
        ['what there is', 'tccl topo list'],
        ['what is known and what is assumed of a machine', 'tccl topo list aws-p5'],
        ['the machine as a tree', 'tccl topo show aws-p5'],
      ),
    )
    .action(async (machine: string | undefined, options: { json?: boolean }) => {
      const { list } = await import('../topo/list.js');
      list(machine, options);
    });
}

/** A whole number from 1 on. */
function positive(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 640)
    throw new InvalidArgumentError('It must be a whole number from 1 to 640.');
  return value;
}
