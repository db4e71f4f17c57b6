// The heat equation on a square plate, cut into blocks: one for each rank. In every step the ranks exchange the edges of
// their blocks with up to four neighbours. Any number of ranks gives the same temperatures, to the bit.
//
//   npx tccl run -n 4 -- node examples/heat.mjs
//   SIZE=400 STEPS=1000 npx tccl run -n 6 --no-prefix -- node examples/heat.mjs
import { createHash } from 'node:crypto';
import { init } from 'tccl';

const size = Number(process.env.SIZE ?? 240);
const steps = Number(process.env.STEPS ?? 400);
const flow = 0.2; // of the difference to a neighbour, in one step; stable up to 0.25

const comm = await init();

// Blocks lie in a grid that is as square as the number of ranks allows.
const rows = Array.from({ length: comm.nRanks }, (_, i) => i + 1)
  .filter((n) => comm.nRanks % n === 0 && n * n <= comm.nRanks)
  .at(-1);
const columns = comm.nRanks / rows;
const place = { row: Math.floor(comm.rank / columns), column: comm.rank % columns };
const [top, bottom] = part(place.row, rows);
const [left, right] = part(place.column, columns);
const [height, width] = [bottom - top, right - left];

// A block with a frame of one cell for the neighbours' edges. Rows follow each other.
const stride = width + 2;
let now = new Float64Array((height + 2) * stride);
let next = new Float64Array(now.length);
for (let y = top; y < bottom; y++) {
  for (let x = left; x < right; x++) now[cell(y - top, x - left)] = heatedAt(y, x);
}

// Buffers come from alloc, so that ranks of a host exchange them without extra copies.
const neighbours = [
  { peer: rankAt(-1, 0), length: width, edge: cell(0, 0), frame: cell(-1, 0), step: 1 },
  { peer: rankAt(1, 0), length: width, edge: cell(height - 1, 0), frame: cell(height, 0), step: 1 },
  { peer: rankAt(0, -1), length: height, edge: cell(0, 0), frame: cell(0, -1), step: stride },
  { peer: rankAt(0, 1), length: height, edge: cell(0, width - 1), frame: cell(0, width), step: stride },
]
  .filter(({ peer }) => peer !== undefined)
  .map((neighbour) => ({
    ...neighbour,
    out: comm.alloc(Float64Array, neighbour.length),
    in: comm.alloc(Float64Array, neighbour.length),
  }));

let communicating = 0;
const begun = performance.now();
for (let step = 0; step < steps; step++) {
  const before = performance.now();
  await exchangeEdges();
  communicating += performance.now() - before;
  spread();
}
const seconds = (performance.now() - begun) / 1e3;

await show();
await comm.close();

/** All edges at once: in a group, the order of sends and receives does not matter. */
async function exchangeEdges() {
  for (const { out, edge, step, length } of neighbours) for (let i = 0; i < length; i++) out[i] = now[edge + i * step];
  await comm.group(() => {
    for (const neighbour of neighbours) {
      comm.send(neighbour.out, neighbour.peer);
      comm.recv(neighbour.in, neighbour.peer);
    }
  });
  for (const { in: values, frame, step, length } of neighbours)
    for (let i = 0; i < length; i++) now[frame + i * step] = values[i];
}

/** One step in time. The plate's border stays cold. */
function spread() {
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = cell(y, x);
      const border = top + y === 0 || top + y === size - 1 || left + x === 0 || left + x === size - 1;
      next[at] = border ? 0 : now[at] + flow * (now[at - stride] + now[at + stride] + now[at - 1] + now[at + 1] - 4 * now[at]);
    }
  }
  [now, next] = [next, now];
}

/** Rank 0 collects the blocks, draws the plate and prints a hash of all temperatures. */
async function show() {
  const block = new Float64Array(height * width);
  for (let y = 0; y < height; y++) block.set(now.subarray(cell(y, 0), cell(y, 0) + width), y * width);
  if (comm.rank !== 0) return comm.send(block, 0);

  const plate = new Float64Array(size * size);
  for (let rank = 0; rank < comm.nRanks; rank++) {
    const [firstRow, endRow] = part(Math.floor(rank / columns), rows);
    const [firstColumn, endColumn] = part(rank % columns, columns);
    const blockWidth = endColumn - firstColumn;
    const values = rank === 0 ? block : new Float64Array((endRow - firstRow) * blockWidth);
    if (rank !== 0) await comm.recv(values, rank);
    for (let y = firstRow; y < endRow; y++)
      plate.set(values.subarray((y - firstRow) * blockWidth, (y - firstRow + 1) * blockWidth), y * size + firstColumn);
  }
  const shades = ' .:-=+*#%@';
  for (let line = 0; line < 16; line++) {
    const cells = Array.from(
      { length: 48 },
      (_, i) => plate[Math.floor(((line + 0.5) * size) / 16) * size + Math.floor(((i + 0.5) * size) / 48)],
    );
    console.log(
      cells
        .map((heat) => shades[Math.min(9, Math.floor(heat * 10))])
        .join('')
        .trimEnd(),
    );
  }
  console.log(`temperatures ${createHash('sha256').update(plate).digest('hex').slice(0, 16)}`);
  console.log(
    `${steps} steps on ${size} × ${size} cells in ${seconds.toFixed(2)} s, of which ${(communicating / 1e3).toFixed(2)} s communication (${rows} × ${columns} ranks)`,
  );
}

/** Initial temperatures: two hot plates, the rest cold. */
function heatedAt(y, x) {
  const [v, u] = [y / size, x / size];
  return (v > 0.2 && v < 0.5 && u > 0.15 && u < 0.45) || (v > 0.6 && v < 0.85 && u > 0.5 && u < 0.9) ? 1 : 0;
}

/** First cell of the n-th of `parts`, and the cell after its last. */
function part(n, parts) {
  return [Math.floor((n * size) / parts), Math.floor(((n + 1) * size) / parts)];
}

function cell(y, x) {
  return (y + 1) * stride + x + 1;
}

/** The rank of a neighbour, or undefined where the plate ends. */
function rankAt(rowStep, columnStep) {
  const [row, column] = [place.row + rowStep, place.column + columnStep];
  return row >= 0 && row < rows && column >= 0 && column < columns ? row * columns + column : undefined;
}
