import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { inFile, InputError, InvalidArgumentError } from '../../errors.js';
import { describeHosts, evidenceIn, type EvidenceText, type HostFacts } from '../../planner/evidence/facts.js';
import { machineOf } from '../../planner/evidence/machine-of-tools.js';
import { machineOfProduct } from '../../planner/evidence/named-machine.js';
import { encodingOf, isHwloc, isXml } from '../../planner/readers/classify.js';
import { topologyInLog } from '../../planner/log/machine/topology-in-log.js';
import type { Parameters } from '../../planner/parameters.js';
import { buildSystem } from '../../planner/topology/build/build-system.js';
import { completeSkeleton, isSkeleton } from '../../planner/topology/catalogue/complete.js';
import type { Hardware } from '../../planner/topology/catalogue/hardware.js';
import { HARDWARE_FORM } from '../../planner/topology/catalogue/hardware-form.js';
import { findMachine, PCIE_BOX_FORM, suggestMachine } from '../../planner/topology/catalogue/machines.js';
import type { System } from '../../planner/topology/system.js';
import { describeNote } from '../../planner/topology/xml/notes.js';
import { type ParsedXml, parseXml, xmlLimits } from '../../planner/topology/xml/parse.js';
import { childNamed, createElement, descendants, type XmlElement } from '../../planner/topology/xml/tree.js';
import { counted } from '../../counted.js';
import { validateTopology } from '../../planner/topology/xml/validate.js';
import { fileError } from '../output.js';

/** A topology that the command line names: a file, `-` for the standard input, or a machine of the catalogue. */
export interface TopologyInput extends ParsedXml {
  /** Name in titles. */
  readonly title: string;
  /** File name for messages; undefined for a machine of the catalogue. */
  readonly fileName: string | undefined;
  /** Outputs of tools that describe it: {@link completeTopology} makes its devices. */
  readonly evidence?: HostFacts;
  /** Notes on other hosts of the text. */
  readonly hostNotes?: readonly string[];
}

/** Hosts of one kind in a text. */
export interface HostsInput {
  readonly input: TopologyInput;
  readonly count: number;
}

/**
 * @throws SystemError where a file cannot be read, InputError where it is not XML or too large, InvalidArgumentError where
 *   neither a file nor a machine has that name.
 */
export function readTopologyInput(name: string): TopologyInput {
  const text = readText(name);
  return text === undefined ? catalogueInput(name) : parseTopology(text);
}

/** A text and the name of its source. */
export interface NamedText {
  readonly text: string;
  readonly fileName: string;
  /** The files of a folder; `text` is all of them. */
  readonly parts?: readonly EvidenceText[];
}

/** Kept, because a command may first look for a cluster file in it, then for a topology. */
let standardInput: NamedText | undefined;

/** The text of a file or of a folder's files, or with `-` of the standard input; undefined where there is no such file. */
export function readText(name: string): NamedText | undefined {
  if (name === '-') return (standardInput ??= { text: readBounded(0, 'standard input'), fileName: 'standard input' });
  if (name.includes('\0')) return undefined;
  if (isFolder(name)) return readFolder(name);
  const file = tryOpen(name);
  if (file === undefined) return undefined;
  try {
    return { text: readBounded(file, name), fileName: name };
  } finally {
    closeSync(file);
  }
}

/**
 * The text of one file that has to exist.
 *
 * @param what the file is, as in `is a folder: give a table of a tuner`
 * @throws InvalidArgumentError for a folder and where there is no such file
 */
export function readOneFile(name: string, what: string): NamedText {
  const text = name !== '-' && isFolder(name) ? undefined : readText(name);
  if (text !== undefined) return text;
  const problem = isFolder(name) ? 'is a folder' : 'there is no such file';
  throw new InvalidArgumentError('FILE', `${problem}: give ${what}`, { file: name });
}

// No file has a name with a zero byte, and Node's functions throw at it.
function isFolder(name: string): boolean {
  return !name.includes('\0') && statSync(name, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Files of a folder that are read: outputs of that many hosts. */
const MOST_FILES = 512;

/** Texts in a folder; others (pictures, archives) have zero bytes. */
function readFolder(name: string): NamedText {
  const names = readdirSync(name, { withFileTypes: true }).filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
  if (names.length > MOST_FILES)
    throw new InputError('TOO_LARGE', `is a folder with ${names.length} files; at most ${MOST_FILES} are read`, { file: name });
  const parts = names
    .map((entry) => join(name, entry.name))
    .sort()
    .flatMap((fileName): EvidenceText[] => {
      const file = openSync(fileName, 'r');
      try {
        const text = readBounded(file, fileName);
        return text.includes('\0') ? [] : [{ text, fileName }];
      } finally {
        closeSync(file);
      }
    });
  return { text: parts.map(({ text }) => text).join('\n'), fileName: name, parts };
}

/**
 * A topology file, the first machine that a log has (NCCL_DEBUG_SUBSYS=GRAPH), or the first host of outputs of tools.
 *
 * @throws InputError where the text is none of these
 */
export function parseTopology(named: NamedText): TopologyInput {
  const [first, ...others] = parseHosts(named);
  if (first === undefined) throw new InputError('CONTENT', 'no machine in it', { file: named.fileName });
  if (others.length === 0 && first.count === 1) return first.input;
  const all = [first, ...others];
  const hosts = all.flatMap(({ input }) => input.evidence ?? []);
  const total = all.reduce((sum, { count }) => sum + count, 0);
  const what = hosts.length > 0 ? describeHosts(hosts) : counted(total, 'topology file');
  return { ...first.input, hostNotes: [...(first.input.hostNotes ?? []), `it has ${what}; this is the first`] };
}

/**
 * The same with all hosts.
 *
 * @throws InputError where the text is none of these
 */
export function parseHosts(named: NamedText): readonly HostsInput[] {
  const { text, fileName, parts } = named;
  const files = parts?.filter((part) => isXml(part.text) && !isHwloc(part.text) && part.text.includes('<system')) ?? [];
  if (files.length > 0) return topologiesOf(files, (parts ?? []).length - files.length);
  const isTopology = isXml(text) && !isHwloc(text) && parts === undefined;
  const logged = isTopology ? undefined : topologyInLog(text);
  if (logged !== undefined)
    return [{ input: { title: `a machine in ${basename(fileName)}`, fileName, root: logged, notes: [] }, count: 1 }];
  const hosts = isTopology ? undefined : inFile(fileName, () => evidenceIn(...(parts ?? [{ text, fileName }])));
  if (hosts !== undefined)
    return hosts.map((evidence, index) => {
      const title = evidence.name ?? `the machine${hosts.length > 1 ? ` ${index + 1}` : ''} in ${basename(fileName)}`;
      return { input: { title, fileName, evidence, root: createElement('system'), notes: [] }, count: evidence.count };
    });
  if (parts !== undefined)
    throw new InputError('CONTENT', `is a folder without outputs about a machine: ${OUTPUTS}`, { file: fileName });
  return [{ input: { title: basename(fileName), fileName, ...parseXml(text, { fileName }) }, count: 1 }];
}

/** Topology files of several hosts, in the order of their names; equal ones are counted. */
function topologiesOf(files: readonly NamedText[], others: number): readonly HostsInput[] {
  const hosts: HostsInput[] = [];
  for (const { text, fileName } of files) {
    const last = hosts.at(-1);
    const same = files.find((each) => each.fileName === last?.input.fileName)?.text === text;
    if (last !== undefined && same) hosts.splice(-1, 1, { ...last, count: last.count + 1 });
    else hosts.push({ input: { title: basename(fileName), fileName, ...parseXml(text, { fileName }) }, count: 1 });
  }
  const [first] = hosts;
  if (first === undefined || others === 0) return hosts;
  const note = `${counted(others, 'other file')} beside the topology files ${others === 1 ? 'is' : 'are'} not read`;
  return [{ ...first, input: { ...first.input, hostNotes: [note] } }, ...hosts.slice(1)];
}

const OUTPUTS = 'put files in it with what nvidia-smi topo -m, lstopo, lspci or nvidia-smi -L print, or name a file';

/** True for text in which outputs of tools describe a machine. */
export function hasEvidence({ text, fileName, parts }: NamedText): boolean {
  if (parts !== undefined) return true;
  try {
    return evidenceIn({ text, fileName }) !== undefined;
  } catch (error) {
    if (error instanceof InputError) return true;
    throw error;
  }
}

/** @throws InvalidArgumentError where the catalogue has no such machine: `name` is no file either */
export function catalogueInput(name: string): TopologyInput {
  const machine = findMachine(name) ?? machineOfProduct(name);
  if (machine !== undefined) return { title: machine.name, fileName: undefined, root: machine.build(), notes: [] };
  throw new InvalidArgumentError(
    'FILE',
    `there is no file ${name}, and no such machine in the catalogue${suggestMachine(
      name,
    )} (tccl topo list shows all, and ${PCIE_BOX_FORM})`,
  );
}

/** The file, or undefined if it does not exist. */
function tryOpen(name: string): number | undefined {
  try {
    return openSync(name, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw fileError(error, name, 'read');
  }
}

/** All of a file, in pieces: a file that is too large is given up before it fills the memory. */
function readBounded(file: number, name: string): string {
  const tooLarge = () =>
    new InputError('TOO_LARGE', `more than ${xmlLimits.length / 2 ** 20} MiB; that is no topology`, { file: name });
  try {
    if (fstatSync(file).size > xmlLimits.length) throw tooLarge();
    const pieces: Buffer[] = [];
    let total = 0;
    for (;;) {
      const piece = Buffer.alloc(65_536);
      const length = readOnce(file, piece);
      if (length === 0) break;
      total += length;
      if (total > xmlLimits.length) throw tooLarge();
      pieces.push(piece.subarray(0, length));
    }
    const bytes = Buffer.concat(pieces);
    const encoding = encodingOf(bytes);
    // As PowerShell writes it. TextDecoder would take a byte order mark off, which NCCL does not.
    return encoding === 'utf8' ? bytes.toString() : new TextDecoder(encoding).decode(bytes);
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw fileError(error, name, 'read');
  }
}

function readOnce(file: number, piece: Buffer): number {
  try {
    return readSync(file, piece, 0, piece.length, null);
  } catch (error) {
    // Windows reports the end of a pipe in this way.
    if ((error as NodeJS.ErrnoException).code === 'EOF') return 0;
    throw error;
  }
}

/** A topology with all its devices, and notes on their origin. */
interface CompleteTopology {
  readonly root: XmlElement;
  /** Notes of one line: differences from NCCL's reading of the text, and additions. */
  readonly notes: readonly string[];
}

/**
 * Adds the devices of a description if the input has only places.
 *
 * @throws InputError where the input cannot be a machine, or has no GPUs and none are described
 */
export function completeTopology(
  { fileName, root, notes, evidence, hostNotes = [] }: TopologyInput,
  hardware: Hardware | undefined,
): CompleteTopology {
  return inFile(fileName, () => {
    if (evidence !== undefined) {
      const made = machineOf(evidence, hardware);
      return { root: made.root, notes: [...hostNotes, ...made.notes] };
    }
    validateTopology(root);
    const complete = isSkeleton(root) || hardware !== undefined ? completeSkeleton(root, hardware) : { root, notes: [] };
    // Without a CPU, buildSystem reports the error.
    if (childNamed(complete.root, 'cpu') !== undefined && ![...descendants(complete.root)].some(({ name }) => name === 'gpu')) {
      throw new InputError(
        'CONTENT',
        `no GPU in <system>: NCCL adds those of the machine that it runs on; describe them with --hardware ${HARDWARE_FORM}`,
        { line: complete.root.line, column: complete.root.column },
      );
    }
    return {
      root: complete.root,
      notes: [...hostNotes, ...notes.map((note) => describeNote(note, fileName)), ...complete.notes],
    };
  });
}

/** The graph of a machine, and notes of one line on values that NCCL reads in an unexpected way. */
export function buildNoted(
  root: XmlElement,
  fileName: string | undefined,
  parameters: Parameters,
): { readonly system: System; readonly notes: readonly string[] } {
  const notes: string[] = [];
  const system = inFile(fileName, () =>
    buildSystem(root, {
      parameters,
      onNote: ({ message, line }) =>
        notes.push(fileName === undefined || line === 0 ? message : `${fileName}:${line}: ${message}`),
    }),
  );
  return { system, notes };
}
