import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';

const pages = fileURLToPath(new URL('../build/pages', import.meta.url));
const { version, repository } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** Pages of a folder, by title. */
function pagesOf(folder) {
  return readdirSync(join(pages, folder))
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .map((name) => ({
      text: /^# (.*)$/m.exec(readFileSync(join(pages, folder, name), 'utf8'))?.[1]?.replaceAll('`', '') ?? name,
      link: `/${folder}/${name.replace(/(index)?\.md$/, '')}`,
    }))
    .sort((a, b) => ((folder === 'learn' ? a.link < b.link : a.text < b.text) ? -1 : 1));
}

export default defineConfig({
  title: 'tccl',
  description: 'Collective communication for TypeScript',
  srcDir: 'build/pages',
  outDir: '../build/docs',
  cacheDir: 'build/cache',
  cleanUrls: false,
  rewrites: { 'README.md': 'overview.md' },
  // Pages are Markdown alone: <gpu> in a text is text.
  markdown: { html: false },
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Start', link: '/' },
      { text: 'All pages', link: '/overview' },
      { text: 'Learn', link: '/learn/README' },
      { text: 'API', link: '/api/' },
      { text: `version ${version}`, link: '/changelog' },
    ],
    sidebar: [
      { text: 'Guides', collapsed: false, items: pagesOf('guides') },
      { text: 'Reference', collapsed: true, items: [...pagesOf('reference'), { text: 'API', link: '/api/' }] },
      { text: 'Learn how NCCL works', collapsed: true, items: pagesOf('learn') },
      { text: 'Notes', collapsed: true, items: pagesOf('notes') },
      { text: 'Glossary', link: '/glossary' },
      { text: 'Architecture', link: '/architecture' },
    ],
    outline: [2, 3],
    ...(repository?.url === undefined
      ? {}
      : { socialLinks: [{ icon: 'github', link: repository.url.replace(/^git\+|\.git$/g, '') }] }),
  },
});
