// Serves the page with the two headers that let its workers share memory, and tccl/browser under /tccl/.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname } from 'node:path';

const types = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript' };

const server = createServer(async ({ url }, response) => {
  const { pathname } = new URL(url, 'http://localhost');
  const file = pathname.startsWith('/tccl/')
    ? new URL(pathname.slice('/tccl/'.length), import.meta.resolve('tccl/browser'))
    : new URL(pathname === '/' ? 'index.html' : `.${pathname}`, import.meta.url);
  try {
    const content = await readFile(file);
    response.writeHead(200, {
      'Content-Type': types[extname(file.pathname)] ?? 'text/plain',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Embedder-Policy': 'require-corp',
    });
    response.end(content);
  } catch {
    response.writeHead(404).end();
  }
});
const port = Number(process.env.PORT ?? 8000);
server.on('error', ({ message }) => {
  console.error(`port ${port} cannot be used (${message}): set PORT to a free one`);
  process.exitCode = 1;
});
server.listen(port, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
