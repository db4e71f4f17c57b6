import { fork } from 'node:child_process';
import { SystemError } from '../../errors.js';
import { ownPath } from '../../own-module.js';

interface StartedAggregator {
  /** Value of TCCL_AGGREGATOR for the ranks. */
  readonly id: string;
  readonly stop: () => void;
}

/**
 * Starts `tccl aggregator` on this host for one job. It ends with this process, however that ends.
 *
 * @throws SystemError `LAUNCH` when it ends before it listens; its own message is on standard error
 */
export async function startAggregator(env: NodeJS.ProcessEnv): Promise<StartedAggregator> {
  const child = fork(ownPath('cli/main.js'), ['aggregator'], {
    env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [],
  });
  const id = await new Promise<string>((resolve, reject) => {
    child.once('message', (text: string) => resolve(text));
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      reject(
        new SystemError(
          'LAUNCH',
          `the aggregator of --collnet ended before it listened (${signal ?? `exit code ${code ?? ''}`})`,
        ),
      ),
    );
  });
  child.unref();
  child.channel?.unref();
  return {
    id,
    stop: () => {
      if (child.connected) child.disconnect();
    },
  };
}
