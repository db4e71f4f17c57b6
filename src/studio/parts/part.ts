import type { ShownPart } from '../messages.js';
import { shownChanges } from './changes.js';
import { shownTimes } from './choice.js';
import { shownCluster } from './cluster.js';
import type { PartInput } from './input.js';
import { shownLearn } from './learn.js';
import { shownChannels, shownMachines, shownMatrices } from './machine.js';
import { shownMotion } from './motion.js';
import { shownWhy } from './why.js';

/** The contents of the state's view. */
export function partOf(input: PartInput): ShownPart | undefined {
  const { made, state, tables, width } = input;
  switch (state.view) {
    case 'machine':
      return shownMachines(input);
    case 'cluster':
      return shownCluster(input);
    case 'matrix':
      return shownMatrices(input);
    case 'choice':
      return shownTimes(made, state, tables, width);
    case 'channels':
      return shownChannels(made);
    case 'motion':
      return shownMotion(made, state, width);
    case 'why':
      return shownWhy(made, width);
    case 'changes':
      return shownChanges(input);
    case 'learn':
      return shownLearn(input);
    case 'log':
      return undefined;
  }
}
