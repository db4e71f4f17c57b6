import type { Parameters } from '../../parameters.js';
import { PathType } from '../../topology/types.js';
import { graphOf, type TuningInput } from '../input.js';
import type { NcclAlgorithm } from '../names.js';
import type { Reason } from '../reasons.js';

/** LL128 needs paths on which 128 bytes stay together. */
export function ll128Reasons(input: TuningInput, algorithm: NcclAlgorithm, { ll128C2c }: Parameters): Reason[] {
  const { minCompCap, maxCompCap, graphs } = input;
  const { typeIntra, typeInter } = graphs[graphOf[algorithm]];
  const reasons: Reason[] = [];
  const farthest = minCompCap >= 90 && ll128C2c !== 0 ? PathType.PXN : PathType.PXB;
  if (typeInter > farthest) reasons.push({ why: 'll128-path', between: 'GPU and NIC', type: typeInter, farthest });
  if (typeIntra > PathType.NVB) reasons.push({ why: 'll128-path', between: 'GPUs', type: typeIntra, farthest: PathType.NVB });
  if (minCompCap !== maxCompCap && minCompCap < 90) reasons.push({ why: 'll128-mixed-gpus', minCompCap, maxCompCap });
  if (minCompCap < 70) reasons.push({ why: 'll128-old-gpu', compCap: minCompCap });
  return reasons;
}
