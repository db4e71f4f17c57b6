import { absent } from '../../../platform/browser/absent.js';

export const inLanes = absent('inLanes');
export const RailsTransport = absent('RailsTransport');
