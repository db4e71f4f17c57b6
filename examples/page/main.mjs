// The page: starts the ranks and draws the loss that rank 0 reports.
import { spawnRanks } from '/tccl/index.js';

const nRanks = Number(new URLSearchParams(location.search).get('ranks') ?? 4);
const line = document.querySelector('polyline');
const status = document.querySelector('[role=status]');
const points = [];
let first;

try {
  await spawnRanks(nRanks, './rank.mjs', {
    onMessage({ epoch, nEpochs, loss }) {
      first ??= loss;
      points.push(`${(100 * epoch) / nEpochs},${40 - (38 * loss) / first}`);
      line.setAttribute('points', points.join(' '));
      status.textContent = `Epoch ${epoch} of ${nEpochs} in ${nRanks} workers: loss ${loss.toFixed(9)}`;
    },
  });
  document.body.dataset.state = 'done';
} catch (error) {
  status.textContent = error.message;
  document.body.dataset.state = 'failed';
}
