import { machines } from '../planner/topology/catalogue/machines.js';
import type { Beginning } from './messages.js';
import { exampleState } from './state.js';
import { serve } from './worker.js';

/** Width of the page for which the example is drawn, pixels; the picture of a machine does not depend on it. */
const WIDTH = 1280;

/** Plans the example, for the build of the page. */
export function beginning(): Promise<Beginning> {
  return new Promise((resolve, reject) => {
    const ask = serve((reply) => {
      if (reply.kind === 'error') reject(new Error(reply.message));
      else if (reply.kind === 'shown')
        resolve({ example: reply.shown, machines: machines.map(({ name, description }) => ({ name, description })) });
    });
    ask({ id: 0, state: exampleState, width: WIDTH, files: [] });
  });
}
