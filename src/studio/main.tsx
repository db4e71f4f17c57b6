import { render } from 'preact';
import type { Shown } from './messages.js';
import { App } from './page/app.js';
import { drawingStyle } from './page/drawing.js';
import { begin, follow, showBeginning } from './page/store.js';
import { unpackedWords } from './unpacked.js';

/**
 * The script of the page. It draws at once, the example if the address names nothing else, and starts the worker when the browser
 * has read the worker's script, which is in an element behind this one, so that a single file works from a disk.
 */
const style = new CSSStyleSheet();
style.replaceSync(drawingStyle());
document.adoptedStyleSheets = [style];
const files = embeddedFiles();
showBeginning(JSON.parse(contentsOf('beginning')) as Shown, files);
const root = document.getElementById('studio');
if (root !== null) render(<App />, root);
document.addEventListener('DOMContentLoaded', () => {
  const url = URL.createObjectURL(new Blob([unpackedWords(contentsOf('worker'))], { type: 'text/javascript' }));
  begin(() => new Worker(url), files);
  const live = document.querySelector<HTMLMetaElement>('meta[name="tccl-events"]');
  if (live !== null) follow(live.content);
});

function contentsOf(id: string): string {
  return document.getElementById(id)?.textContent ?? '';
}

/** Files that `tccl studio FILE` puts into the page: name, and contents in base64. */
function embeddedFiles(): { readonly name: string; readonly blob: Blob }[] {
  const embedded = JSON.parse(contentsOf('files')) as readonly { readonly name: string; readonly base64: string }[];
  return embedded.map(({ name, base64 }) => ({
    name,
    blob: new Blob([Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))]),
  }));
}
