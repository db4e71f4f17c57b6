import { counted } from '../../../../counted.js';
import type { PciDevice } from '../../../readers/lspci.js';
import type { LogFinding } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { hasEnded } from '../../job/outcome.js';
import { onHost, outputsOf } from './outputs.js';

/** Flags of ACS that send transfers between devices up to the root complex. */
const redirecting = ['ReqRedir', 'CmpltRedir'];

/** PCIe as `lspci -vvv` shows it: access control that breaks P2P, links that trained down. */
export function checkPci(model: LogModel): LogFinding[] {
  return outputsOf(model, 'lspci').flatMap(({ facts: { devices }, ...output }) => [
    ...acs(devices, onHost(output), model),
    ...slow(devices, onHost(output)),
  ]);
}

function acs(devices: readonly PciDevice[], on: string, model: LogModel): LogFinding[] {
  // Only bridges redirect; a device without a description is a line of `grep ACSCtl`.
  const redirected = devices.filter(
    ({ acs: flags, isBridge, description }) =>
      (isBridge || description === '') && flags?.some((flag) => redirecting.includes(flag)) === true,
  );
  const [first] = redirected;
  if (first === undefined) return [];
  const links = model.communicators.flatMap(({ ranks }) => [...ranks.values()].flatMap((record) => [...record.links]));
  const onlyNvlink =
    model.communicators.some(({ ranks }) => [...ranks.values()].some(({ nvlink }) => nvlink)) &&
    !links.some(({ transport }) => transport.gdr === true);
  const isHarmless = hasEnded(model) || onlyNvlink;
  const places = redirected.map(({ busId }) => busId).filter((busId) => busId !== '');
  return [
    {
      code: 'acs',
      severity: isHarmless ? 'info' : 'error',
      kind: isHarmless ? 'note' : 'fault',
      explains: [
        'watchdog-timeout',
        'bandwidth-low',
        'result-wrong',
        'p2p-refused',
        'ib-local-protection',
        'ib-remote-access',
        'cuda-illegal-access',
        'iommu-on',
      ],
      problem: `PCIe access control (ACS) is on at ${counted(redirected.length, 'bridge')}${on}${places.length === 0 ? '' : ` (${places.slice(0, 4).join(', ')}${places.length > 4 ? ', …' : ''})`}: P2P between devices below goes up to the root complex and through the IOMMU`,
      cause:
        'the BIOS or the kernel switches ACS on, as for virtual machines; P2P and GPUDirect RDMA then hang, damage data or are slow',
      remedy:
        'switch ACS off in the BIOS (or setpci on each bridge after boot), and the IOMMU off or to iommu=pt; in a VM use ATS; NCCL_P2P_DISABLE=1 confirms it',
      source: 'NVIDIA/nccl#2079',
      quote: `ACSCtl: ${first.acs?.map((flag) => `${flag}+`).join(' ') ?? ''}`,
      places: redirected.slice(0, 4).map(({ place }) => place),
    },
  ];
}

/** Accelerators and network cards, whose links matter; a link idles at a lower generation, not with fewer lanes. */
const fast = /NVIDIA|3D controller|InfiniBand|Mellanox|ConnectX|Ethernet|BlueField/i;

function slow(devices: readonly PciDevice[], on: string): LogFinding[] {
  const narrow = devices.filter(
    ({ description, capable, actual, isBridge }) =>
      !isBridge &&
      fast.test(description) &&
      capable !== undefined &&
      actual !== undefined &&
      actual.width < capable.width &&
      capable.width >= 8,
  );
  const [first] = narrow;
  if (first === undefined) return [];
  return [
    {
      code: 'pcie-slow',
      severity: 'warning',
      kind: 'cost',
      explains: ['bandwidth-low', 'port-slow'],
      problem: `${narrow
        .slice(0, 4)
        .map(({ busId, actual, capable }) => `${busId} has ${actual?.width ?? ''} of ${capable?.width ?? ''} PCIe lanes`)
        .join(', ')}${on}`,
      cause: 'the link trained down, or the slot has fewer lanes',
      remedy: 'reseat the card, or move it to another slot; look at the bridge above it, too',
      places: narrow.slice(0, 4).map(({ place }) => place),
    },
  ];
}
