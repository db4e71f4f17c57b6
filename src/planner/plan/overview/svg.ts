import { counted } from '../../../counted.js';
import { charts, CHART_STYLE } from './charts.js';
import type { Forecast } from './forecast.js';
import { escape } from '../../topology/view/markup.js';
import type { Overview } from './overview.js';
import { limitText } from './format.js';

/** The charts of a plan as a self-contained picture, for light and dark backgrounds. */
export function overviewSvg(overview: Overview, curves: readonly Forecast[]): string {
  const { title, nRanks, nNodes, nChannels, hosts } = overview;
  const { svg, width, height } = charts(curves);
  const head = 64;
  const [host] = [...hosts].sort((a, b) => a.searchedGBps - b.searchedGBps);
  const facts = `${nRanks} ranks on ${counted(nNodes, 'node')}, ${nChannels} channels · ${host === undefined ? '' : limitText(host)}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + head}" viewBox="0 0 ${width} ${height + head}" role="img" class="tc">`,
    `<title>${escape(`${title}: bus bandwidth and choice of algorithm by size`)}</title>`,
    `<style>${CHART_STYLE}</style>`,
    '<rect width="100%" height="100%" class="tc-paper"/>',
    `<text x="20" y="30" class="tc-title">${escape(title)}</text>`,
    `<text x="20" y="50" class="tc-dim">${escape(facts)}</text>`,
    `<g transform="translate(0 ${head})">`,
    svg,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}
