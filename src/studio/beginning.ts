import type { Beginning, Shown } from './messages.js';
import { exampleState } from './state.js';
import { serve } from './worker.js';

/** Width of pictures on most phones; on others they are scaled. */
const PHONE_WIDTH = 350;

/** Plans the example, for the build of the page. */
export async function beginning(): Promise<Beginning> {
  return { page: await example(undefined), phone: await example(PHONE_WIDTH) };
}

function example(width: number | undefined): Promise<Shown> {
  return new Promise((resolve, reject) => {
    const ask = serve((reply) => {
      if (reply.kind === 'error') reject(new Error(reply.message));
      else if (reply.kind === 'shown') resolve(reply.shown);
    });
    ask({ id: 0, state: exampleState, width, files: [] });
  });
}
