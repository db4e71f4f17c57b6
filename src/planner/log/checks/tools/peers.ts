import type { PeerTest } from '../../../readers/peer-test.js';
import type { LogFinding } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { onHost, outputsOf } from './outputs.js';

/** With P2P, a healthy pair is at least as fast as through the host; below this share of it, P2P takes a detour. */
const SLOW_SHARE = 0.6;

/** P2P as `p2pBandwidthLatencyTest` measures it: slower than without, or no result at all. */
export function checkPeers(model: LogModel): LogFinding[] {
  return outputsOf(model, 'p2pBandwidthLatencyTest').flatMap(({ facts, ...output }) =>
    slowPeers(facts, onHost(output), output.place),
  );
}

const explains = ['watchdog-timeout', 'first-collective-stuck', 'bandwidth-low', 'collective-stuck'] as const;
const CAUSE =
  'PCIe access control (ACS) or the IOMMU sends transfers between GPUs up to the CPU, or the chipset or hypervisor passes them badly';
const REMEDY =
  '`lspci -vvv` (ACSCtl: no ReqRedir+) and `cat /proc/cmdline`; switch ACS and the IOMMU off in the BIOS, or iommu=pt; until then NCCL_P2P_DISABLE=1';

function slowPeers(
  { peers, disabled, enabled, enabledAt }: PeerTest,
  on: string,
  begins: LogFinding['places'][number],
): LogFinding[] {
  const places = [enabledAt ?? begins];
  if (enabledAt !== undefined && enabled.size === 0 && disabled.size > 0 && peers.size > 0)
    return [
      {
        code: 'p2p-detour',
        severity: 'error',
        kind: 'fault',
        explains,
        problem: `p2pBandwidthLatencyTest${on} ends where it begins to measure with P2P: data do not pass between the GPUs`,
        cause: CAUSE,
        remedy: REMEDY,
        places,
      },
    ];
  const slow = [...peers].flatMap((pair) => {
    const [by, without] = [enabled.get(pair), disabled.get(pair)];
    return by === undefined || without === undefined || by >= SLOW_SHARE * without ? [] : [{ pair, by, without }];
  });
  const [worst] = slow.sort((a, b) => a.by / a.without - b.by / b.without);
  if (worst === undefined) return [];
  const [from = '', to = ''] = worst.pair.split(' ');
  return [
    {
      code: 'p2p-detour',
      severity: 'error',
      kind: 'fault',
      explains,
      problem: `P2P${on} is slower than copies through the host: GPU ${from} to GPU ${to} reaches ${worst.by.toFixed(1)} GB/s with P2P and ${worst.without.toFixed(1)} without, and ${slow.length - 1} more pairs are like this`,
      cause: CAUSE,
      remedy: REMEDY,
      places,
    },
  ];
}
