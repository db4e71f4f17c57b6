import { render } from 'preact';
import type { Request } from './messages.js';
import { App } from './page/app.js';
import { drawingStyle } from './page/drawing.js';
import { begin, follow } from './page/store.js';
import { serve } from './worker.js';

/**
 * The one script of the page. The page starts workers from the script's own text, so that a single file works from a disk:
 * in a worker, which has no document, it serves requests.
 */
if (typeof document === 'undefined') startWorker();
else startPage(document.currentScript?.textContent ?? '');

function startWorker(): void {
  const answer = serve((reply) => globalThis.postMessage(reply));
  globalThis.onmessage = ({ data }: MessageEvent<Request>) => answer(data);
}

function startPage(script: string): void {
  const style = new CSSStyleSheet();
  style.replaceSync(drawingStyle());
  document.adoptedStyleSheets = [style];
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  begin(() => new Worker(url), embeddedFiles());
  const live = document.querySelector<HTMLMetaElement>('meta[name="tccl-events"]');
  if (live !== null) follow(live.content);
  const root = document.getElementById('studio');
  if (root !== null) render(<App />, root);
}

/** Files that `tccl studio FILE` puts into the page: name, and contents in base64. */
function embeddedFiles(): { readonly name: string; readonly blob: Blob }[] {
  const text = document.getElementById('files')?.textContent ?? '[]';
  const files = JSON.parse(text) as readonly { readonly name: string; readonly base64: string }[];
  return files.map(({ name, base64 }) => ({
    name,
    blob: new Blob([Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))]),
  }));
}
