import { type Generation, generationOf } from '../../src/planner/tuning/constants.js';
import type { ScheduledCollective } from '../../src/planner/schedule/schedule.js';
import { sizeClassOf } from '../../src/planner/simulate/measured-calls.js';
import { measuredPhysics, type Physics } from '../../src/planner/simulate/physics.js';
import { placeTitles } from '../calibration/coverage.js';
import { predictMeasured } from '../calibration/fit-physics.js';
import type { LeftOutFit } from '../calibration/left-out.js';
import { believedUs, type MeasuredCall, PCIE } from '../calibration/measured.js';
import { sizeTitles } from '../calibration/size-titles.js';

const generationNames: Readonly<Partial<Record<Generation, string>>> = {
  ampere: 'A100',
  hopper: 'H100, H200',
  blackwell: 'B200, GB200',
};
/** The box of PCIe cards that was measured comes after all generations. */
const places = [...Object.values(generationNames), placeTitles.cards];
const sizes = Object.keys(sizeTitles);
const order: readonly ScheduledCollective[] = ['AllReduce', 'AllGather', 'ReduceScatter', 'AllToAll', 'SendRecv'];

/** The table of errors of simulated times: by class of machine, collective and size. */
export function simulatedTable(calls: readonly MeasuredCall[], fits: readonly LeftOutFit[]): string {
  const without = new Map(fits.flatMap(({ left, physics }) => (left.by === 'machine' ? [[left.name, physics] as const] : [])));
  const groups = new Map<string, { readonly title: string; readonly rank: number; readonly calls: MeasuredCall[] }>();
  for (const call of calls) {
    if (call.doubt !== undefined) continue;
    const box = call.fabric === PCIE ? placeTitles.cards : undefined;
    const name = box ?? generationNames[generationOf(call.tuning.input.minCompCap)];
    if (name === undefined) continue;
    const size = sizeClassOf(call.bytes);
    const place = box ?? `${name}, ${call.hosts === 1 ? 'one node' : '2 to 10 nodes'}`;
    const title = `${place} | ${call.collective} | ${sizeTitles[size]}`;
    const rank =
      (places.indexOf(name) * 2 + (call.hosts > 1 ? 1 : 0)) * 100 + order.indexOf(call.collective) * 3 + sizes.indexOf(size);
    const group = groups.get(title) ?? { title, rank, calls: [] };
    group.calls.push(call);
    groups.set(title, group);
  }
  const rows = [...groups.values()].sort((a, b) => a.rank - b.rank).map(({ title, calls: all }) => rowOf(title, all, without));
  return [
    '| machines | collective | size | rows | fitted | left out | NCCL’s belief |',
    '|---|---|---|--:|--:|--:|--:|',
    ...rows,
  ].join('\n');
}

function rowOf(title: string, calls: readonly MeasuredCall[], without: ReadonlyMap<string, Physics>): string {
  const meanError = (predict: (call: MeasuredCall) => number | undefined) => {
    const errors = calls.flatMap((call) => {
      const time = predict(call);
      return time === undefined ? [] : [Math.abs(time / call.timeUs - 1)];
    });
    return errors.length === 0 ? undefined : errors.reduce((sum, error) => sum + error, 0) / errors.length;
  };
  const fitted = meanError((call) => predictMeasured(call, measuredPhysics));
  const leftOut = meanError((call) => predictMeasured(call, without.get(call.machine) ?? measuredPhysics));
  const belief = meanError(believedUs);
  const percent = (error: number | undefined) => (error === undefined ? 'none' : `${(100 * error).toFixed(1)} %`);
  return `| ${title} | ${calls.length} | ${percent(fitted)} | ${percent(leftOut)} | ${percent(belief)} |`;
}
