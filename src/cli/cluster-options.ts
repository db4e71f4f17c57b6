import type { Command } from 'commander';
import { type VersionOptions, withVersionOptions } from './version-options.js';
import { collect } from './output.js';

/** Help text about CLUSTER, which cluster-input.ts reads. */
export const CLUSTER_HELP =
  'cluster file (YAML), topology file (XML), outputs of nvidia-smi, lstopo or lspci (a file or folder), - for the standard input, or a machine of the catalogue (tccl topo list); NAME:4 for four of it';

/** Options that go with it, as commander gives them. */
export interface ClusterOptions extends VersionOptions {
  /** `--nodes`: how many of the one machine. */
  readonly nodes?: string;
  /** `--hardware`: completes a topology without devices. */
  readonly hardware?: string;
  /** `--env`, each `NAME=VALUE`. */
  readonly env?: readonly string[];
  /** `--collnet`: the network can reduce and is asked to. */
  readonly collnet?: boolean;
  /** `--windows`: buffers of calls in symmetric windows. */
  readonly windows?: string;
  /** `--launch`: how calls begin. */
  readonly launch?: string;
  /** `--network`: kind of network between hosts. */
  readonly network?: string;
}

/** Help text of `--windows`. */
export const WINDOWS_HELP =
  'buffers that lie in windows registered as symmetric: symmetric (input and result), send, receive or none (default)';

/** Gives a command that times calls `--windows`. */
export function withWindowsOption(command: Command): Command {
  return command.option('--windows <buffers>', WINDOWS_HELP);
}

/** Gives a command that simulates calls the conditions of a simulation. */
export function withSimulationOptions(command: Command): Command {
  return command
    .option(
      '--launch <mode>',
      'launch of calls: queued on the stream (default), single, each on an empty stream as PyTorch does it, or graph',
    )
    .option(
      '--network <kind>',
      "network between hosts: infiniband, roce, verbs (one of both), efa, efa-v1, slingshot, sockets or tcpx (default: the provider's or that of the cards, or verbs)",
    );
}

/** Gives a command that plans one cluster {@link ClusterOptions}. */
export function withClusterOptions(command: Command): Command {
  return withVersionOptions(command)
    .option('--nodes <count>', 'number of such machines that work together (default: 1)')
    .option('--hardware <description>', 'what the machine has where the file does not say: a line, or @FILE')
    .option('--env <name=value>', 'set a variable of NCCL; can be repeated', collect)
    .option('--collnet', 'the network can reduce (SHARP) and is asked to');
}
