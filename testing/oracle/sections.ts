import type { Difference } from './difference.js';
import { graphsDifference } from './graph-sections.js';
import { alignedGraphsDifference, channelsDifference, commDifference, nvlsDifference } from './merge-sections.js';
import type { OracleCase } from './oracle-case.js';
import { nodeTypesDifference, pathsDifference, systemDifference } from './topology-sections.js';
import { transportsDifference } from './transport-sections.js';
import { choiceDifference, tuningDifference } from './tuning-sections.js';

/** One part of the answer that is compared on its own. */
export interface Section {
  readonly name: string;
  /** The first difference, or undefined where all is equal. @throws TcclError where the planner fails. */
  readonly compare: (oracleCase: OracleCase) => Difference | undefined;
  /** Calls of NCCL (their beginnings) that fail in this part. */
  readonly failsIn?: readonly string[];
}

/**
 * All parts of the answer, in the order in which NCCL works them out.
 */
export const sections: readonly Section[] = [
  { name: 'nodeTypes', compare: nodeTypesDifference },
  { name: 'system', compare: systemDifference, failsIn: ['ncclTopoGetXml', 'ncclTopoGetSystem'] },
  {
    name: 'paths',
    compare: pathsDifference,
    failsIn: ['ncclTopoComputePaths', 'ncclTopoTrimSystem', 'ncclTopoSearchInit', 'ncclNvlsInit'],
  },
  {
    name: 'graphs',
    compare: (oracleCase) => graphsDifference(oracleCase) ?? alignedGraphsDifference(oracleCase.expected, oracleCase.merged),
    failsIn: ['ncclTopoCompute('],
  },
  {
    name: 'comm',
    compare: ({ expected, merged }) => commDifference(expected, merged),
    failsIn: ['ncclTopoComputeP2pChannels', 'ncclTopoGetMinNetBw', 'ncclTopoGetLocalNet', 'mixed local', 'ncclP2pSchedule'],
  },
  {
    name: 'channels',
    compare: ({ expected, merged }) => channelsDifference(expected, merged),
    failsIn: ['ncclTopoPreset', 'ncclTopoPostset'],
  },
  { name: 'nvls', compare: ({ expected, merged }) => nvlsDifference(expected, merged) },
  { name: 'transports', compare: transportsDifference },
  { name: 'tuning', compare: ({ expected, tuning }) => tuningDifference(expected, tuning), failsIn: ['ncclTopoTuneModel'] },
  { name: 'choice', compare: ({ expected, tuning }) => choiceDifference(expected, tuning) },
];
