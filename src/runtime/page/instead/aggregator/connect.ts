import { absent } from '../../../platform/browser/absent.js';

export const connectAggregator = absent('an aggregator');
