import { formatGBps } from './format.js';
import type { System } from './system.js';

/** `8 GPUs (sm 90), 8 network devices (50 GB/s), 2 CPUs, NVSwitch`. */
export function systemSummary(system: System): string {
  const count = (number: number, one: string, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;
  const sms = [...new Set(system.hardware.map(({ sm }) => sm))].sort((a, b) => a - b);
  const speeds = [...new Set(system.nets.map(({ bandwidthGBps }) => formatGBps(bandwidthGBps)))];
  return [
    ...(system.hostHashes.length > 1 ? [count(system.hostHashes.length, 'host')] : []),
    sms.length === 1 && sms[0] === 0
      ? count(system.gpus.length, 'CPU device')
      : `${count(system.gpus.length, 'GPU')} (sm ${sms.join(', ')})`,
    system.nets.length === 0 ? 'no network device' : `${count(system.nets.length, 'network device')} (${speeds.join(', ')} GB/s)`,
    count(system.cpus.length, 'CPU'),
    ...(system.nvSwitches.length > 0 ? ['NVSwitch'] : []),
  ].join(', ');
}
