import { absent } from '../../../../platform/browser/absent.js';

/** WebAssembly is a page's only code: it has no C library that could make memory executable. */
export const MachineCode = absent('MachineCode');
