import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The browser's command; undefined where there is none. */
export const browser = ['chromium', 'chromium-browser', 'google-chrome'].find((command) => {
  try {
    return execFileSync(command, ['--version'], { stdio: 'pipe' }).length > 0;
  } catch {
    return false;
  }
});

/** Goes behind a test's name: why it cannot run here, or nothing. */
export const missing = browser === undefined ? ' (needs: chromium)' : '';

/** The document that a page has become when its scripts have run. */
export function domOf(page: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-browser-'));
  try {
    writeFileSync(join(folder, 'page.html'), page);
    return execFileSync(
      browser ?? '',
      [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        `--user-data-dir=${join(folder, 'profile')}`,
        '--virtual-time-budget=60000',
        '--dump-dom',
        join(folder, 'page.html'),
      ],
      { encoding: 'utf8', maxBuffer: 2 ** 26, stdio: ['ignore', 'pipe', 'ignore'] },
    );
  } finally {
    rmSync(folder, { recursive: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** SwiftShader, which Chromium contains, computes on the host's cores. */
export const software = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--enable-features=Vulkan'];
