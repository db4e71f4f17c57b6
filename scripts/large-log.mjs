// The cost of two gigabytes of log: npm run logs -- --large [GIB], with the logs of the table repeated, read from a file and
// through a pipe. The file lies in the folder for temporary files while it is measured.
import { spawn } from 'node:child_process';
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const cli = join(dirname(fileURLToPath(import.meta.url)), '../dist/cli/main.js');
const REPORT = 'RESOURCES ';
// The command is measured from inside, which works on every system. On Linux, maxRSS counts what the process was forked from.
const measuring = `data:text/javascript,${encodeURIComponent(`
  import { readFileSync } from 'node:fs';
  process.on('exit', () => {
    const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
    let kib = maxRSS;
    try {
      kib = Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
    } catch {}
    process.stderr.write(${JSON.stringify(REPORT)} + JSON.stringify({ userCPUTime, systemCPUTime, kib }) + '\\n');
  });
`)}`;

/** Reads `gib` GiB of repeated texts, and prints time and memory. */
export async function measureLarge(texts, gib) {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-large-'));
  const file = join(folder, 'large.log');
  try {
    const whole = Buffer.from(`${texts.join('\n')}\n`);
    const bytes = fill(file, whole, gib * 2 ** 30);
    console.log(
      `${(bytes / 2 ** 30).toFixed(2)} GiB: ${texts.length} logs of ${(whole.length / 2 ** 20).toFixed(1)} MiB repeated; load ${loadavg()[0].toFixed(1)}`,
    );
    for (const way of ['file', 'pipe']) {
      const { userS, systemS, wallS, peakMB } = await measure(file, way);
      console.log(
        `by ${way}  ${wallS.toFixed(1)} s (processor ${userS.toFixed(1)} s, system ${systemS.toFixed(1)} s), at most ${peakMB.toFixed(0)} MB of memory`,
      );
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function fill(file, piece, most) {
  const handle = openSync(file, 'w');
  let written = 0;
  while (written < most) written += writeSync(handle, piece, 0, Math.min(piece.length, most - written));
  closeSync(handle);
  return written;
}

function measure(file, way) {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const child = spawn(process.execPath, ['--import', measuring, cli, 'log', way === 'pipe' ? '-' : file], {
      stdio: [way === 'pipe' ? 'pipe' : 'ignore', 'ignore', 'pipe'],
    });
    let told = '';
    child.stderr.on('data', (text) => (told += text));
    if (way === 'pipe') createReadStream(file).pipe(child.stdin);
    child.on('error', reject);
    child.on('close', () => {
      const line = told.split('\n').find((each) => each.startsWith(REPORT));
      if (line === undefined) return reject(new Error(`tccl log said: ${told}`));
      const { userCPUTime, systemCPUTime, kib } = JSON.parse(line.slice(REPORT.length));
      resolve({
        userS: userCPUTime / 1e6,
        systemS: systemCPUTime / 1e6,
        wallS: (performance.now() - begin) / 1000,
        peakMB: (kib * 1024) / 1e6,
      });
    });
  });
}
