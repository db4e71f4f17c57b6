import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../src/planner/parameters.js';
import { type Cluster, prepareCluster } from '../../../src/planner/plan/cluster.js';
import { curveSizes, forecast } from '../../../src/planner/plan/overview/forecast.js';
import { overviewOf } from '../../../src/planner/plan/overview/overview.js';
import { planPrepared } from '../../../src/planner/plan/plan.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { parseXml } from '../../../src/planner/topology/xml/parse.js';
import { descendants } from '../../../src/planner/topology/xml/tree.js';
import { choose } from '../../../src/planner/tuning/choose.js';
import { tune } from '../../../src/planner/tuning/tune.js';
import { overviewSvg } from '../../../src/view/choice/charts.js';
import type { Picture } from '../../../src/view/draw/picture.js';
import { overviewHtml } from '../../../src/view/page/plan-page.js';

function make(
  cluster: Cluster,
  environment: Readonly<Record<string, string>> = {},
  sizes: readonly number[] = [1024, 2 ** 20, 2 ** 30],
  title = 'a cluster',
) {
  const { parameters } = parametersFromEnvironment(environment);
  const prepared = prepareCluster(cluster, parameters);
  const plan = planPrepared(prepared, parameters);
  const tuning = tune(plan, parameters);
  return { tuning, overview: overviewOf({ title, cluster, prepared, plan, parameters, environment, tuning, sizes }) };
}

const hostsOf = (name: string, count: number): Cluster => ({ hosts: [{ machine: machine(name), count, name }] });

describe('page and picture', () => {
  const empty: Picture = { title: 'a <machine>', width: 10, height: 10, marks: [] };
  const curvesOf = ({ tuning }: ReturnType<typeof make>) => forecast(tuning, curveSizes(1024, 2 ** 30));

  it('the picture is well-formed, with a line for each group of collectives and a band for each choice', () => {
    const made = make(hostsOf('dgx-h100', 2), {}, [1024, 2 ** 30], 'two <hosts> & "more"');
    const { root } = parseXml(overviewSvg(made.overview, curvesOf(made)));
    const elements = [...descendants(root)];
    expect(elements.filter(({ attributes }) => attributes.get('class')?.startsWith('t-curve') === true)).toHaveLength(3);
    const bands = curvesOf(made).reduce((sum, { flips }) => sum + flips.length + 1, 0);
    expect(elements.filter(({ name }) => name === 'rect').length).toBeLessThanOrEqual(bands + 1);
    expect(elements.filter(({ name }) => name === 'rect').length).toBeGreaterThan(5);
  });

  it('the page loads nothing from elsewhere and escapes names', () => {
    const made = make(hostsOf('dgx-h100', 2), {}, [1024, 2 ** 30], 'two <script>hosts</script> & "more"');
    const html = overviewHtml(made.overview, curvesOf(made), [empty]);
    expect(html).toContain('two &lt;script&gt;hosts&lt;/script&gt; &amp; &quot;more&quot;');
    expect(html).not.toMatch(/<script|<link|@import|url\(|(?:src|href)="(?!data:)/);
    expect(html).toContain('prefers-color-scheme:dark');
  });

  it('the page has the kernels on symmetric windows, and why some calls have none', () => {
    const made = make(hostsOf('dgx-h100', 1), { NCCL_SYM_NOWIN_ENABLE: '1' });
    const html = overviewHtml(made.overview, curvesOf(made), []);
    expect(html).toContain('On symmetric windows');
    expect(html).toContain('AllReduce: The fastest symmetric kernel is an LL kernel');
    expect(overviewHtml(make(hostsOf('dgx-h100', 1)).overview, curvesOf(made), [])).not.toContain('On symmetric windows');
  });

  it("the page has the simulated times beside NCCL's belief", () => {
    const made = make(hostsOf('dgx-h100', 1), {}, [1024]);
    const choice = choose(made.tuning, 'AllReduce', 1024);
    const row = { bytes: 1024, timeUs: 20, leastUs: 15, mostUs: 31, busGBps: 0.1 };
    const html = overviewHtml(
      made.overview,
      curvesOf(made),
      [],
      [
        { collective: 'AllReduce', rows: [{ ...row, choice }] },
        { collective: 'AllToAll', rows: [{ ...row, choice: undefined }] },
      ],
    );
    expect(html).toContain('<td class="">20.0 us</td><td class="i">15.0 us to 31.0 us</td><td class="">0.10</td>');
    expect(html).toContain('<h3>AllToAll</h3>');
    expect(html).toContain('<b>0.10 GB/s</b><span>AllReduce bus bandwidth at 1 KiB, predicted</span>');
    const believed = overviewHtml(made.overview, curvesOf(made), []);
    expect(believed).not.toMatch(/redicted/);
    expect(believed).toContain('AllReduce bus bandwidth at 1 KiB, as NCCL believes');
  });

  it('the page names the version of NCCL that is planned for', () => {
    const { parameters } = parametersFromEnvironment({}, '2.26.2');
    const cluster = hostsOf('dgx-h100', 1);
    const prepared = prepareCluster(cluster, parameters);
    const plan = planPrepared(prepared, parameters);
    const tuning = tune(plan, parameters);
    const input = { title: '', cluster, prepared, plan, parameters, environment: {}, tuning, sizes: [1024] };
    const html = overviewHtml(overviewOf(input), forecast(tuning, [1024]), []);
    expect(html).toContain('NCCL 2.26.2');
    expect(html).not.toContain('2.30.7');
  });

  it('a single size, or no algorithm, can be drawn', () => {
    const one = make(hostsOf('dgx-a100', 1), {}, [4096]);
    expect(parseXml(overviewSvg(one.overview, forecast(one.tuning, curveSizes(4096, 4096)))).root.name).toBe('svg');
    const none = make(hostsOf('dgx-a100', 1), { NCCL_ALGO: 'NVLS' });
    expect(none.overview.forecasts[0]?.rows.every(({ choice }) => choice === undefined)).toBe(true);
    const svg = overviewSvg(none.overview, curvesOf(none));
    expect(svg).toContain('nothing left');
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    expect(overviewHtml(none.overview, curvesOf(none), [])).not.toMatch(/NaN|Infinity|undefined/);
  });
});
