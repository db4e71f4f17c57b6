import { diagnosticsRules } from './diagnostics.js';
import { gpuRules } from './gpu.js';
import { infinibandRules } from './infiniband.js';
import { kernelRules } from './kernel.js';
import { launcherRules } from './launchers.js';
import { memoryRules } from './memory.js';
import { pytorchRules } from './pytorch.js';
import { outputRules } from './outputs.js';
import { programRules } from './programs.js';
import type { LineRule } from './rule.js';
import { socketRules } from './sockets.js';
import { startRules } from './starts.js';
import { versionRules } from './versions.js';

/** Every rule about lines. Of rules with one code, and of several that a line matches, the first one counts. */
export const lineRules: readonly LineRule[] = [
  ...kernelRules,
  ...outputRules,
  ...programRules,
  ...memoryRules,
  ...diagnosticsRules,
  ...gpuRules,
  ...infinibandRules,
  ...socketRules,
  ...versionRules,
  ...startRules,
  ...pytorchRules,
  ...launcherRules,
];
