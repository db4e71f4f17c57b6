export { spawn } from 'node:child_process';
export type { ChildProcess, StdioOptions } from 'node:child_process';
