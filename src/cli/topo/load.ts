import { inFile } from '../../errors.js';
import { type Parameters, parametersFromEnvironment } from '../../planner/parameters.js';
import { parseHardware } from '../../planner/topology/catalogue/hardware.js';
import { mergeNics } from '../../planner/topology/combine/merge-nics.js';
import { withoutEmptyBranches } from '../../planner/topology/combine/prune.js';
import { computePaths } from '../../planner/topology/paths/compute-paths.js';
import type { Paths } from '../../planner/topology/paths/paths.js';
import type { System } from '../../planner/topology/system.js';
import type { XmlElement } from '../../planner/topology/xml/tree.js';
import { newGpuNotes, versionNotes, type VersionOptions, versionOf } from '../version-options.js';
import { buildNoted, completeTopology, readOneFile, type TopologyInput } from './input.js';

/** A machine with its graph and paths. */
interface LoadedMachine {
  readonly title: string;
  readonly root: XmlElement;
  readonly system: System;
  readonly paths: Paths;
  readonly parameters: Parameters;
  /** Notes of one line: differences from NCCL's reading, and additions. */
  readonly notes: readonly string[];
}

/**
 * The graph and paths of an input, with the settings of the environment.
 *
 * @throws InputError where NCCL would refuse it, where it is impossible, or where it has no GPUs and none are described.
 */
export function loadMachine(
  input: TopologyInput,
  hardware: string | undefined,
  merge: boolean,
  options: VersionOptions = {},
): LoadedMachine {
  const { root: whole, notes } = completeTopology(input, hardware === undefined ? undefined : readHardware(hardware));
  const { parameters, notes: environmentNotes } = parametersFromEnvironment(process.env, versionOf(options));
  const mergeNotes = mergeOnRequest(whole, parameters, input.fileName, merge);
  const root = withoutEmptyBranches(whole);
  const { system, notes: systemNotes } = buildNoted(root, input.fileName, parameters);
  return {
    title: input.title,
    root,
    system,
    paths: inFile(input.fileName, () => computePaths(system, parameters)),
    parameters,
    notes: [
      ...versionNotes(parameters.ncclVersion),
      ...newGpuNotes(input.title, system.gpus, parameters),
      ...environmentNotes.map(({ message }) => message),
      ...mergeNotes,
      ...notes,
      ...systemNotes,
    ],
  };
}

/** Merges network devices on request; returns a note if only a variable requests it. */
export function mergeOnRequest(
  root: XmlElement,
  parameters: Parameters,
  fileName: string | undefined,
  merge: boolean,
): readonly string[] {
  if (merge)
    inFile(fileName, () => {
      mergeNics(root, parameters);
    });
  const unheard = merge ? [] : ['NCCL_NET_MERGE_LEVEL', 'NCCL_NET_FORCE_MERGE'].filter((name) => process.env[name] !== undefined);
  return unheard.map((name) => `${name} counts with --merge-nics only: without it, network devices stay as the file has them`);
}

/** A description of hardware as the command line gives it: the text itself, or `@FILE`. */
export function readHardware(argument: string): ReturnType<typeof parseHardware> {
  if (!argument.startsWith('@')) return parseHardware(argument);
  return parseHardware(readOneFile(argument.slice(1), 'a file that describes hardware, as @FILE').text);
}
