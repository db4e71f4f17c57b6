import { absent } from '../../../platform/browser/absent.js';

export const systemInterfaces = (): readonly never[] => [];
export const chooseInterface = absent('chooseInterface');
