import { type InputError, InvalidArgumentError } from '../../errors.js';
import { type Network, networks, wordOf } from '../simulate/environment.js';
import type { Fabric } from '../simulate/fabric.js';
import { type Windows, windowsOf } from '../windows.js';
import { MOST_HOSTS, splitCount, unknownVariable } from './cluster-text.js';
import type { Overrides } from './overrides.js';
import { YamlReader } from './yaml-reader.js';

/** The contents of a cluster file. */
export interface ClusterFile {
  readonly name: string | undefined;
  /** In the order of their ranks. */
  readonly machines: readonly ClusterFileMachine[];
  /** Variables of NCCL. */
  readonly environment: Readonly<Record<string, string>>;
  /** Kind of network, for simulations. */
  readonly network: Network | undefined;
  /** Buffers of calls in symmetric windows. */
  readonly windows: Windows | undefined;
  /** The switches between hosts, and an error about them with its place. */
  readonly fabric: { readonly fabric: Fabric; readonly wrong: (message: string) => InputError } | undefined;
}

/** Consecutive machines that are equal. */
export interface ClusterFileMachine {
  /** A machine of the catalogue or a topology file. */
  readonly machine: string;
  readonly count: number;
  readonly name: string | undefined;
  /** Hardware that the topology file does not describe. */
  readonly hardware: string | undefined;
  readonly overrides: Overrides;
  /** An error about it, with its place in the file. */
  readonly wrong: (message: string) => InputError;
}

/**
 * Reads a cluster file, YAML or JSON:
 *
 *     name: training
 *     machines:                          # in the order of their ranks
 *       - machine: dgx-h100              # of the catalogue, or a topology file beside this one
 *         count: 4
 *         overrides:
 *           nics: 4                      # how many, or which: [mlx5_0, mlx5_3]
 *           nic-speed: 200G
 *           nic-carries: 400G            # a bond of two such ports
 *           gpus: [0, 1, 2, 3]           # which have ranks, or how many
 *           sharp: true                  # the NICs can reduce
 *           p2p: true                    # the driver allows P2P over PCIe
 *       - machine: azure-ndv5.xml
 *         hardware: 8 x H100 SXM, 8 x 400G NIC
 *     fabric:
 *       rails: optimised                 # none (default), optimised, only
 *       tiers:
 *         - { hosts: 8, oversubscription: 2 }
 *     network: infiniband                # verbs (default), roce, efa, slingshot, …
 *     environment:
 *       NCCL_CROSS_NIC: 0
 *     windows: symmetric                 # buffers of calls are registered: symmetric, send, receive, none (default)
 *
 * `machines` may also be a single name, or names with a count (`dgx-h100:4`).
 *
 * @throws InputError with the line: no YAML, an unknown field or variable, a value of the wrong kind
 */
export function parseClusterFile(text: string): ClusterFile {
  const file = YamlReader.parse(text, 'the cluster file');
  const fields = ['name', 'machines', 'environment', 'fabric', 'network', 'windows'] as const;
  const { name, machines, environment, fabric, network, windows } = file.fields(fields);
  if (machines === undefined)
    throw file.wrongAt('the cluster file has no machines; write machines: [{ machine: dgx-h100, count: 2 }]');
  const read = machines.items().map(readMachine);
  if (read.length === 0)
    throw machines.wrongAt('the list of machines is empty; write machines: [{ machine: dgx-h100, count: 2 }]');
  return {
    name: name?.text('a name'),
    machines: read,
    environment: Object.fromEntries(
      environment?.entries().map(([variable, value]) => [variable, readVariable(variable, value)]) ?? [],
    ),
    network: network && readWord(network, networks.join(', '), (text) => wordOf(text, networks, 'network')),
    windows: windows && readWord(windows, 'symmetric, send, receive or none', windowsOf),
    fabric: fabric === undefined ? undefined : { fabric: readFabric(fabric), wrong: (message) => fabric.wrongAt(message) },
  };
}

/** A word, whose error gets its place in the file. */
function readWord<Word>(reader: YamlReader, words: string, read: (text: string) => Word): Word {
  try {
    return read(reader.text(words));
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw reader.wrongAt(error.message);
    throw error;
  }
}

const RAILS = ['none', 'optimised', 'only'] as const;

function readFabric(reader: YamlReader): Fabric {
  const { rails, tiers } = reader.fields(['rails', 'tiers']);
  const kind = rails?.text(`one of ${RAILS.join(', ')}`) ?? 'none';
  const known = RAILS.find((each) => each === kind);
  if (known === undefined) throw (rails ?? reader).wrong(`one of ${RAILS.join(', ')}`);
  return {
    rails: known,
    tiers: (tiers?.items() ?? []).map((tier) => {
      const { hosts, oversubscription } = tier.fields(['hosts', 'oversubscription']);
      if (hosts === undefined) throw tier.wrongAt('a tier of switches has no field hosts: how many are below each');
      const ratio = Number(oversubscription?.text('a number from 1 on') ?? 1);
      if (!(ratio >= 1 && ratio <= 1000)) throw (oversubscription ?? tier).wrong('a number from 1 on');
      return { hosts: hosts.integer(1, MOST_HOSTS), oversubscription: ratio };
    }),
  };
}

function readMachine(entry: YamlReader): ClusterFileMachine {
  const wrong = (message: string) => entry.wrongAt(message);
  if (entry.kind === 'text') {
    const { name, count } = splitCount(entry.text('a machine'));
    return { machine: name, count: count ?? 1, name: undefined, hardware: undefined, overrides: {}, wrong };
  }
  const { machine, count, name, hardware, overrides } = entry.fields(['machine', 'count', 'name', 'hardware', 'overrides']);
  if (machine === undefined)
    throw entry.wrongAt('an entry of machines has no field machine: a name of the catalogue or a topology file');
  return {
    machine: machine.text('a name of the catalogue or a topology file'),
    count: count?.integer(1, MOST_HOSTS) ?? 1,
    name: name?.text('a name'),
    hardware: hardware === undefined ? undefined : hardware.kind === 'text' ? hardware.text('a description') : hardware.json(),
    overrides: overrides === undefined ? {} : readOverrides(overrides),
    wrong,
  };
}

function readOverrides(reader: YamlReader): Overrides {
  const {
    gpus,
    nics,
    sharp,
    p2p,
    'nic-speed': speed,
    'nic-carries': carries,
  } = reader.fields(['gpus', 'nics', 'nic-speed', 'nic-carries', 'sharp', 'p2p']);
  return {
    ...(gpus === undefined
      ? {}
      : { gpus: gpus.kind === 'list' ? gpus.items().map((gpu) => gpu.integer(0, 4095)) : gpus.integer(1, 4096) }),
    ...(nics === undefined
      ? {}
      : { nics: nics.kind === 'list' ? nics.items().map((nic) => nic.text('the name of a NIC')) : nics.integer(0, 4096) }),
    ...(speed === undefined ? {} : { nicSpeedMbps: readSpeed(speed) }),
    ...(carries === undefined ? {} : { nicCarriesMbps: readSpeed(carries) }),
    ...(sharp === undefined ? {} : { sharp: sharp.flag() }),
    ...(p2p === undefined ? {} : { p2p: p2p.flag() }),
  };
}

/** `400G`: gigabits a second. */
function readSpeed(reader: YamlReader): number {
  const [, digits] = /^(\d{1,5})\s*G(?:b(?:ps|\/s)?|bit\/s)?$/i.exec(reader.text('a speed as 400G')) ?? [];
  const gigabits = Number(digits);
  if (!(gigabits > 0)) throw reader.wrong('a speed as 400G');
  return gigabits * 1000;
}

function readVariable(variable: string, value: YamlReader): string {
  const problem = unknownVariable(variable);
  if (problem !== undefined) throw value.wrongAt(problem);
  return value.kind === 'nothing'
    ? ''
    : value.kind === 'flag'
      ? value.flag()
        ? '1'
        : '0'
      : value.text('the value of a variable');
}
