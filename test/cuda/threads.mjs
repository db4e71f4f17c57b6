// Threads of this process as ranks, each with a fake driver: `node threads.mjs RANKS FAKE CHECK`. Prints as `tccl run` does.
import { openPool } from '../../dist/index.js';

const [ranks, ...check] = process.argv.slice(2);
const pool = await openPool({ ranks: Number(ranks), module: new URL('rank.mjs', import.meta.url).pathname });
for (const [rank, result] of (await pool.run('check', ...check)).entries()) console.log(`[${rank}] ${JSON.stringify(result)}`);
await pool.close();
