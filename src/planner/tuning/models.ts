import { type Rules } from '../versions/rules.js';
import { costModel } from './cost-model/cost-model.js';
import { costTable } from './cost-table/table.js';
import type { TuningModel } from './model.js';

/** The model of time that a version of NCCL has. */
export function tuningModelOf({ tuningModel }: Pick<Rules, 'tuningModel'>): TuningModel {
  switch (tuningModel) {
    case 'cost table':
      return costTable;
    case 'cost model':
      return costModel;
  }
}
