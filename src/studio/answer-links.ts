import type { Reference } from '../planner/explain/references.js';
import { scheduledCollectives } from '../planner/schedule/schedule.js';
import type { Device } from './messages.js';
import type { StudioState } from './state.js';

/** The change of the state that shows what a sentence names; undefined for a device that the machine does not have. */
export function shownBy(reference: Reference, devices: readonly Device[]): Partial<StudioState> | undefined {
  const device = (name: string): Partial<StudioState> | undefined => {
    const found = devices.find((each) => each.name.split(' (')[0] === name);
    return found === undefined ? undefined : { view: 'machine', selected: found.subject };
  };
  switch (reference.kind) {
    case 'ring':
      return { view: 'cluster', graph: 'ring', channel: reference.number };
    case 'tree':
      return { view: 'cluster', graph: 'tree', channel: reference.number };
    case 'channel':
      return { view: 'channels', channel: reference.number };
    case 'nic':
      return device(`NET ${reference.number}`);
    case 'gpu':
      return device(`GPU ${reference.number}`);
    case 'rank':
      return { view: 'cluster' };
    case 'link':
      return { view: 'machine' };
    case 'variable':
      return { view: 'changes' };
    case 'algorithm':
      return { view: 'choice' };
    case 'collective': {
      const collective = scheduledCollectives.find((name) => name === reference.collective);
      return { view: 'choice', ...(collective === undefined ? {} : { collective }) };
    }
  }
}

/** The question that a band of a choice stands for, by its subject `call/AllReduce/4096`. */
export function questionOf(subject: string): string | undefined {
  const [, collective, bytes] = /^call\/([A-Za-z]+)\/(\d+)$/.exec(subject) ?? [];
  if (collective === undefined || bytes === undefined) return undefined;
  return `${collective.replace(/(?<=.)([A-Z])/g, '_$1').toLowerCase()} ${bytes} bytes`;
}
