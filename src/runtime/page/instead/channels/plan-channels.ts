import { absent } from '../../../platform/browser/absent.js';

export const planChannels = absent('planChannels');
