import { describeError, TcclError } from '../../src/errors.js';
import { complain } from '../../src/cli/output.js';
import { oracleCommand } from './command.js';

try {
  oracleCommand().parse();
} catch (error) {
  if (!(error instanceof TcclError)) throw error;
  complain('oracle', describeError(error));
  process.exitCode = 2;
}
