import type { LocalSystem } from '../topology/local-systems.js';
import { rulesOf } from '../versions/rules.js';
import { GpuOrder } from './gpu-order.js';
import { ResidualBandwidth } from './residual-bandwidth.js';
import { Nics } from './nics.js';
import { Routes } from './routes.js';
import type { SearchParameters, SearchRules } from './search-input.js';

/** A host prepared for searching. Its bandwidths change while a graph is searched, and stay rounded for the next. */
export class SearchHost {
  readonly local: LocalSystem;
  readonly parameters: SearchParameters;
  readonly rules: SearchRules;
  readonly routes: Routes;
  readonly residual: ResidualBandwidth;
  readonly nics: Nics;
  readonly gpuOrder: GpuOrder;

  /** @throws InputError where a link on which the search reserves bandwidth does not exist. */
  constructor(local: LocalSystem, parameters: SearchParameters) {
    this.local = local;
    this.parameters = parameters;
    this.rules = rulesOf(parameters);
    this.routes = new Routes(local, this.rules);
    this.residual = new ResidualBandwidth(local, this.routes, this.rules);
    this.nics = new Nics(local, this.routes, parameters);
    this.gpuOrder = new GpuOrder(local, this.routes, this.residual, this.rules);
  }

  /** Lowest compute capability × 10. */
  get lowestSm(): number {
    return this.local.system.hardware.reduce((lowest, dev) => Math.min(lowest, dev.sm), Infinity);
  }
}
