import { init } from '../../dist/browser/index.js';
import { times } from './page.mjs';

const comm = await init();
const { searchParams } = new URL(import.meta.url);
const found = times(comm, JSON.parse(searchParams.get('sizes') ?? ''), Number(searchParams.get('seconds')));
if (comm.rank === 0) /** @type {any} */ (globalThis).postMessage(found);
await comm.close();
