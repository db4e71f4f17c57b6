import { inFile, SystemError } from '../../errors.js';
import { type Parameters, parametersFromEnvironment } from '../../parameters.js';
import { parseHardware } from '../../topology/catalogue/hardware.js';
import { computePaths } from '../../topology/paths/compute-paths.js';
import type { Paths } from '../../topology/paths/paths.js';
import type { System } from '../../topology/system.js';
import type { XmlElement } from '../../topology/xml/tree.js';
import { buildNoted, completeTopology, readText, type TopologyInput } from './input.js';

/** A machine ready to be looked at. */
export interface LoadedMachine {
  readonly title: string;
  readonly root: XmlElement;
  readonly system: System;
  readonly paths: Paths;
  readonly parameters: Parameters;
  /** One line each: what NCCL reads otherwise, and what was added. */
  readonly notes: readonly string[];
}

/**
 * The graph and paths of an input, with the settings that the environment asks for.
 *
 * @throws InputError where NCCL would refuse it, where it cannot be, or where it has no GPUs and none are described.
 */
export function loadMachine(input: TopologyInput, hardware: string | undefined): LoadedMachine {
  const { root, notes } = completeTopology(input, hardware === undefined ? undefined : readHardware(hardware));
  const { parameters, notes: environmentNotes } = parametersFromEnvironment(process.env);
  const { system, notes: systemNotes } = buildNoted(root, input.fileName, parameters);
  return {
    title: input.title,
    root,
    system,
    paths: inFile(input.fileName, () => computePaths(system, parameters)),
    parameters,
    notes: [...environmentNotes.map(({ message }) => message), ...notes, ...systemNotes],
  };
}

/** A description of hardware as the command line gives it: the text itself, or `@FILE`. */
export function readHardware(argument: string): ReturnType<typeof parseHardware> {
  if (!argument.startsWith('@')) return parseHardware(argument);
  const name = argument.slice(1);
  const read = readText(name);
  if (read === undefined) throw new SystemError('FILE', 'there is no such file', { file: name });
  return parseHardware(read.text);
}
