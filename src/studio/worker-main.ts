import type { Request } from './messages.js';
import { serve } from './worker.js';

/** The script of the page's workers: serves requests. */
const answer = serve((reply) => globalThis.postMessage(reply));
globalThis.onmessage = ({ data }: MessageEvent<Request>) => answer(data);
