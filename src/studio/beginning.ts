import type { Shown } from './messages.js';
import { exampleState } from './state.js';
import { serve } from './worker.js';

/** Plans the example, for the build of the page. */
export function beginning(): Promise<Shown> {
  return new Promise((resolve, reject) => {
    const ask = serve((reply) => {
      if (reply.kind === 'error') reject(new Error(reply.message));
      else if (reply.kind === 'shown') resolve(reply.shown);
    });
    ask({ id: 0, state: exampleState, width: undefined, files: [] });
  });
}
