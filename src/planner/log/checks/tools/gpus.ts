import { counted } from '../../../../counted.js';
import type { DeviceMatrix } from '../../../readers/matrix.js';
import type { NvlinkStatus, SmiReport, SmiTable } from '../../../readers/nvidia-smi.js';
import type { LogFinding } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { hasEnded } from '../../job/outcome.js';
import { onHost, type OutputOf, outputsOf } from './outputs.js';

/** Faults of GPUs and NVLink that `nvidia-smi` shows. */
export function checkGpus(model: LogModel): LogFinding[] {
  return [
    ...outputsOf(model, 'topo').flatMap((output) =>
      output.facts.kind === 'p2p' ? refused(output.facts, onHost(output), model) : unlinked(output.facts, onHost(output)),
    ),
    ...[...outputsOf(model, 'nvidia-smi -q'), ...outputsOf(model, 'nvidia-smi --query-gpu')].flatMap((output) =>
      report(output.facts, onHost(output)),
    ),
    ...outputsOf(model, 'nvidia-smi').flatMap((output) => failing(output.facts, onHost(output))),
    ...outputsOf(model, 'nvlink').flatMap((output: OutputOf<'nvlink'>) => nvlink(output.facts, onHost(output))),
  ];
}

const refusals: Readonly<Record<string, string>> = {
  CNS: 'the chipset does not support it (CNS)',
  TNS: 'the topology does not support it (TNS)',
  DR: 'a setting of the driver refuses it (DR)',
};

function refused({ columns, rows }: DeviceMatrix, on: string, model: LogModel): LogFinding[] {
  const pairs = rows.flatMap(({ device, cells, place }) =>
    cells.flatMap((cell, index) =>
      refusals[cell] === undefined ? [] : [{ from: device, to: columns[index] ?? '', cell, place }],
    ),
  );
  const [first] = pairs;
  if (first === undefined) return [];
  return [
    {
      code: 'p2p-refused',
      severity: hasEnded(model) ? 'info' : 'warning',
      kind: hasEnded(model) ? 'note' : 'failure',
      explains: ['shm-despite-nvlink', 'p2p-unsupported', 'bandwidth-low'],
      problem: `P2P between ${first.from} and ${first.to}${on} is refused: ${refusals[first.cell] ?? ''}, and so between ${counted(pairs.length / 2, 'pair')} of GPUs`,
      cause:
        'the CPUs or PCIe switches do not pass transfers between devices (an old or desktop chipset, a virtual machine, ACS, an IOMMU)',
      remedy:
        "switch ACS and the IOMMU off in the BIOS; pass whole PCIe switches to a VM; NCCL then goes through the host's memory, as with NCCL_P2P_DISABLE=1",
      places: pairs.slice(0, 4).map(({ place }) => place),
    },
  ];
}

/** GPUs that should be linked like the others, and are not. */
function unlinked({ columns, rows }: DeviceMatrix, on: string): LogFinding[] {
  const cells = rows
    .filter(({ device }) => device.startsWith('GPU'))
    .flatMap(({ device, cells: links, place }) =>
      links.map((link, index) => ({ from: device, to: columns[index] ?? '', link, place })),
    );
  const gpus = cells.filter(({ to, link }) => to.startsWith('GPU') && link !== 'X');
  const nvlinks = gpus.filter(({ link }) => link.startsWith('NV'));
  const findings: LogFinding[] = [];
  const without = gpus.filter(({ link }) => !link.startsWith('NV'));
  // On many machines some pairs have no NVLink by design: one GPU must be in all of them, or the others must all be linked.
  const linked = new Set(nvlinks.map(({ from }) => from));
  const lost = [...new Set(gpus.map(({ from }) => from))].filter((gpu) => !linked.has(gpu));
  const othersAreLinked = lost.length < linked.size && linked.size > 2 && nvlinks.length === linked.size * (linked.size - 1);
  if (without.length > 0 && (othersAreLinked || (nvlinks.length > without.length && hasCulprit(without)))) {
    const worst = mostCommon(without.map(({ from }) => from));
    findings.push({
      code: 'nvlink-degraded',
      severity: 'error',
      kind: 'fault',
      explains: ['bandwidth-low', 'shm-despite-nvlink'],
      problem: `nvidia-smi topo -m${on}: ${worst ?? ''} has no NVLink to ${counted(without.filter(({ from }) => from === worst).length, 'GPU')} (${without[0]?.link ?? ''}), while other pairs have`,
      cause: 'NVLinks of that GPU are down',
      remedy: '`nvidia-smi nvlink -s`; `dmesg -T` (Xid); reset the GPU or drain the host',
      places: without.slice(0, 3).map(({ place }) => place),
    });
  }
  const counts = nvlinks.map(({ link }) => Number(link.slice(2)));
  const most = Math.max(0, ...counts);
  const fewer = nvlinks.filter(({ link }) => Number(link.slice(2)) < most);
  // On machines without NVSwitch pairs have different numbers by design; a pair must then agree both ways.
  const oneWay = nvlinks.find(({ from, to, link }) =>
    nvlinks.some((other) => other.from === to && other.to === from && other.link !== link),
  );
  const switched = fewer.length > 0 && fewer.length <= nvlinks.length / 2 && hasCulprit(fewer);
  if (oneWay !== undefined || switched) {
    const [first] = oneWay === undefined ? fewer : [oneWay];
    findings.push({
      code: oneWay === undefined ? 'nvlink-degraded' : 'nvlink-asymmetric',
      severity: 'error',
      kind: 'fault',
      explains: ['bandwidth-low'],
      problem:
        oneWay === undefined
          ? `nvidia-smi topo -m${on}: ${mostCommon(fewer.map(({ from }) => from)) ?? ''} has ${first?.link ?? ''} to other GPUs, others have NV${most}`
          : `nvidia-smi topo -m${on}: ${oneWay.from} and ${oneWay.to} do not have the same number of NVLinks both ways`,
      cause: 'NVLinks are down',
      remedy: '`nvidia-smi nvlink -s`; reset the GPU; reseat or replace the bridge',
      places: first === undefined ? [] : [first.place],
    });
  }
  return findings;
}

/** One GPU is in every pair that has fewer links. */
function hasCulprit(pairs: readonly { readonly from: string; readonly to: string }[]): boolean {
  return [...new Set(pairs.map(({ from }) => from))].some((gpu) => pairs.every(({ from, to }) => from === gpu || to === gpu));
}

function report({ gpus }: SmiReport, on: string): LogFinding[] {
  const value = (gpu: SmiReport['gpus'][number], ...names: readonly RegExp[]) =>
    [...gpu.values].find(([path]) => names.some((name) => name.test(path)))?.[1];
  const named = (list: readonly SmiReport['gpus'][number][]) =>
    list.length === gpus.length && gpus.length > 1
      ? `all ${gpus.length} GPUs${on}`
      : `${list
          .slice(0, 4)
          .map(({ busId }) => `GPU ${busId}`)
          .join(', ')}${list.length > 4 ? ', …' : ''}${on}`;
  const findings: LogFinding[] = [];

  const unready = gpus.filter((gpu) => {
    const state = value(gpu, /(?:^|\/)Fabric\/State$/)?.value;
    const status = value(gpu, /(?:^|\/)Fabric\/Status$/)?.value ?? 'N/A';
    return (
      (state !== undefined && /^(?:In Progress|Not Started)$/i.test(state)) ||
      (/^Completed$/i.test(state ?? '') && !/^(?:Success|N\/A)$/i.test(status))
    );
  });
  const [first] = unready;
  if (first !== undefined) {
    const state = value(first, /(?:^|\/)Fabric\/State$/);
    const states = unready.map((gpu) => {
      const status = value(gpu, /(?:^|\/)Fabric\/Status$/)?.value ?? 'N/A';
      return `state ${value(gpu, /(?:^|\/)Fabric\/State$/)?.value ?? ''}${status === 'N/A' ? '' : `, status ${status}`}`;
    });
    findings.push({
      code: 'nvlink-fabric-not-ready',
      severity: 'error',
      kind: 'fault',
      explains: ['nvls-failed', 'nvls-bind', 'cuda-state', 'imex', 'cuda-init', 'calls-failed', 'init-unfinished', 'p2p-refused'],
      problem: `the NVLink fabric of ${named(unready)} is not ready: ${[...new Set(states)].join('; ')}`,
      cause:
        'the fabric manager (on B200 and newer with NVLSM) does not run, does not fit the driver, or has not trained the links yet',
      remedy:
        '`systemctl status nvidia-fabricmanager` (same version as the driver; on B200 and newer nvlsm and ib_umad too); restart it, and wait for state Completed, status Success; NCCL_NVLS_ENABLE=0 does not help where CUDA itself waits',
      places: state === undefined ? [] : [state.place],
    });
  }

  const damaged = gpus.flatMap((gpu) => {
    const found = [...gpu.values].find(
      ([path, { value: text }]) =>
        (/ECC Errors\/Volatile\/(?:.*\/)?(?:(?:DRAM|SRAM)? ?Uncorrectable.*|Double Bit\/Total)$/i.test(path) &&
          Number(text) > 0) ||
        (/Remapped Rows\/(?:Pending|Remapping Failure Occurred)$/i.test(path) && /^Yes$/i.test(text)) ||
        (/Retired Pages\/Pending(?: Page Blacklist)?$/i.test(path) && /^Yes$/i.test(text)) ||
        (/GPU Recovery Action$/i.test(path) && !/^(?:None|N\/A)$/i.test(text)),
    );
    return found === undefined ? [] : [{ gpu, path: found[0], ...found[1] }];
  });
  const [sick] = damaged;
  if (sick !== undefined)
    findings.push({
      code: 'gpu-ecc',
      severity: 'error',
      kind: 'fault',
      explains: ['cuda-generic', 'remote-closed', 'watchdog-timeout', 'xid-memory'],
      problem: `${named(damaged.map(({ gpu }) => gpu))}: ${sick.path.replaceAll('/', ', ')} is ${sick.value}`,
      ...memoryReason(sick.path),
      places: damaged.slice(0, 4).map(({ place }) => place),
    });

  const hot = gpus.flatMap((gpu) => {
    const found = [...gpu.values].filter(
      ([path, { value: text }]) =>
        /(?:Throttle|Event) Reasons\/(?:.*\/)?(?:HW Slowdown|HW Thermal Slowdown|HW Power Brake Slowdown|SW Thermal Slowdown)$/i.test(
          path,
        ) && /^Active$/i.test(text),
    );
    const [first] = found;
    const reasons = found.map(([path]) => path.replace(/^.*\//, ''));
    return first === undefined ? [] : [{ gpu, reasons, place: first[1].place }];
  });
  const [slowed] = hot;
  if (slowed !== undefined)
    findings.push({
      code: 'gpu-throttled',
      severity: 'warning',
      kind: 'cost',
      explains: ['bandwidth-low', 'rank-late'],
      problem: `${named(hot.map(({ gpu }) => gpu))} runs slower: ${slowed.reasons.join(' and ')} ${slowed.reasons.length === 1 ? 'is' : 'are'} active`,
      cause: `${throttleCause(slowed.reasons)}; all ranks wait for the slowest GPU`,
      remedy: 'look at temperatures, fans and power (BMC); take the host out until it is mended',
      places: hot.slice(0, 4).map(({ place }) => place),
    });

  const narrow = gpus.flatMap((gpu) => {
    const max = Number(/^\d+/.exec(value(gpu, /Link Width\/Max$/)?.value ?? '')?.[0] ?? NaN);
    const current = value(gpu, /Link Width\/Current$/);
    const width = Number(/^\d+/.exec(current?.value ?? '')?.[0] ?? NaN);
    return width < max && current !== undefined ? [{ gpu, max, width, place: current.place }] : [];
  });
  const [thin] = narrow;
  if (thin !== undefined)
    findings.push({
      code: 'pcie-slow',
      severity: 'warning',
      kind: 'cost',
      explains: ['bandwidth-low'],
      problem: `the PCIe link of ${named(narrow.map(({ gpu }) => gpu))} has ${thin.width} of ${thin.max} lanes`,
      cause: 'the link trained down: a card that does not sit well, a riser, a retimer, or a slot with fewer lanes',
      remedy: '`lspci -vvv` (LnkCap, LnkSta) of the card and of the bridge above it; reseat the card',
      places: narrow.slice(0, 4).map(({ place }) => place),
    });
  return findings;
}

function throttleCause(reasons: readonly string[]): string {
  if (reasons.some((reason) => /Power Brake/i.test(reason)))
    return 'the host asks the GPU to brake: a power supply failed, or the host or rack is at the limit of its power';
  return reasons.some((reason) => /Thermal/i.test(reason))
    ? 'heat: a fan, a filter, or the cooling of the room'
    : 'heat, a fan, or the power supply';
}

/** The meaning of a trouble of GPU memory that `nvidia-smi -q` shows under this path. */
function memoryReason(path: string): Pick<LogFinding, 'cause' | 'remedy'> {
  if (/Remapping Failure/i.test(path))
    return {
      cause: 'rows of GPU memory have errors, and no spare row of their bank is left',
      remedy: 'drain the host, and have the GPU replaced (RMA): a reset does not help',
    };
  if (/Pending/i.test(path))
    return {
      cause: 'rows or pages of GPU memory had errors, and are only taken out of use by the next reset',
      remedy:
        'end all programs on the GPU, then nvidia-smi -r or a reboot; the GPU is in order afterwards, unless errors come back (Xid 48, 63, 64, 94, 95 in `dmesg -T`)',
    };
  return {
    cause: 'GPU memory has errors that wait for a reset, or that cannot be remapped any more',
    remedy: 'drain the host; reset the GPU; replace it if remapping failed or errors come back',
  };
}

function failing({ gpus }: SmiTable, on: string): LogFinding[] {
  const lost = gpus.filter(({ isFailing }) => isFailing);
  const damaged = gpus.filter(({ eccErrors = 0 }) => eccErrors > 0);
  const list = (rows: typeof gpus) => rows.map(({ index, busId }) => `GPU ${index} (${busId})`).join(', ');
  return [
    ...(lost.length === 0
      ? []
      : [
          {
            code: 'gpu-lost' as const,
            severity: 'error' as const,
            kind: 'fault' as const,
            explains: ['cuda-generic', 'remote-closed', 'watchdog-timeout', 'gpu-none'] as const,
            problem: `nvidia-smi cannot read ${list(lost)}${on}: ERR!`,
            cause: 'the GPU does not answer any more',
            remedy: '`dmesg -T` (Xid); power-cycle the host; replace the GPU if it comes back',
            places: lost.map(({ place }) => place),
          },
        ]),
    ...(damaged.length === 0
      ? []
      : [
          {
            code: 'gpu-ecc' as const,
            severity: 'error' as const,
            kind: 'fault' as const,
            explains: ['cuda-generic', 'remote-closed', 'watchdog-timeout', 'xid-memory'] as const,
            problem: `${list(damaged)}${on} counts uncorrected memory errors (${damaged[0]?.eccErrors ?? ''})`,
            cause: 'broken GPU memory',
            remedy: '`nvidia-smi -q` (ECC Errors, Remapped Rows); reset or replace the GPU',
            places: damaged.map(({ place }) => place),
          },
        ]),
  ];
}

/** Counters that stay at zero on a link in order; those of corrected errors (FEC) and of traffic do not. */
const nvlinkTrouble =
  /(?:replay|recovery|crc|uncorrect\w*|fatal|effective|overrun|malformed packet|link integrity|rx(?: remote| general)?) errors?|recovery failed/i;

function nvlink({ gpus }: NvlinkStatus, on: string): LogFinding[] {
  const most = Math.max(0, ...gpus.map(({ active }) => active));
  const fewer = gpus.filter(({ active, inactive }) => active + inactive > 0 && active < most);
  const findings: LogFinding[] = [];
  if (fewer.length > 0) {
    findings.push({
      code: 'nvlink-degraded',
      severity: 'error',
      kind: 'fault',
      explains: ['bandwidth-low'],
      problem: `${fewer
        .map(({ name, active }) => `${name} has ${active}`)
        .slice(0, 4)
        .join(', ')} active NVLinks${on}, others ${most}`,
      cause: 'links are down: GPU, bridge, NVSwitch',
      remedy: '`dmesg -T` (Xid); reset the GPU or drain the host',
      places: fewer.slice(0, 4).map(({ place }) => place),
    });
  }
  const errors = gpus.flatMap(({ name, errors: list }) => list.map((each) => ({ name, ...each })));
  const troubles = errors.filter(({ counter }) => nvlinkTrouble.test(counter));
  const [first] = troubles;
  if (first !== undefined) {
    findings.push({
      code: 'nvlink-errors',
      severity: 'warning',
      kind: 'failure',
      explains: ['bandwidth-low'],
      problem: `NVLink counts errors on ${[...new Set(troubles.map(({ name }) => name))].slice(0, 4).join(', ')}${on}: ${first.text}`,
      cause: 'a bad link, connector or bridge',
      remedy: 'nvidia-smi nvlink -re sets the counters back; run again, and see in `nvidia-smi nvlink -e` whether they grow',
      places: troubles.slice(0, 4).map(({ place }) => place),
    });
  }
  return findings;
}

function mostCommon(names: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}
