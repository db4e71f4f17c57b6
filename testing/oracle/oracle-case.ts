import { InputError, ncclResults, type TcclError } from '../../src/errors.js';
import type { HostGraphs } from '../../src/planner/graph/graph.js';
import { contributionOf, type NodeContribution } from '../../src/planner/graph/merge/contribution.js';
import { type Merged, mergeHosts } from '../../src/planner/graph/merge/merge.js';
import { searchHost } from '../../src/planner/graph/search-host.js';
import { type Parameters, parametersFromEnvironment } from '../../src/planner/parameters.js';
import { assignHost, buildSystem } from '../../src/planner/topology/build/build-system.js';
import { withoutEmptyBranches } from '../../src/planner/topology/combine/prune.js';
import { type LocalSystem, localSystems } from '../../src/planner/topology/local-systems.js';
import { parseXml } from '../../src/planner/topology/xml/parse.js';
import { describeNote } from '../../src/planner/topology/xml/notes.js';
import type { XmlElement } from '../../src/planner/topology/xml/tree.js';
import { tune, type Tuning } from '../../src/planner/tuning/tune.js';
import { defaultVersion } from '../../src/planner/versions/version.js';

/**
 * One case of the oracle: a cluster with parameters (`case.json` and XML files), NCCL's answer (`expected.json`), and the
 * planner's answer, computed at its first use.
 */
export interface OracleInput {
  readonly name: string;
  /** Parsed `case.json`. */
  readonly case: unknown;
  /** Parsed `expected.json`. */
  readonly expected: unknown;
  /** Text of the other files by name. */
  readonly files: ReadonlyMap<string, string>;
}

/** Content of `case.json`, as far as it is needed here. */
export interface CaseFile {
  readonly nodes: readonly { readonly xml: string; readonly count: number }[];
  readonly env: Readonly<Record<string, string>>;
  /** True if the network can reduce and is asked to. */
  readonly collnet: boolean;
  readonly nRanks: number;
  /** The version of NCCL that answered. */
  readonly nccl: string;
  /** Parts that `expected.json` leaves out. */
  readonly omitted: readonly string[];
}

/** NCCL's failure, if it failed. */
export interface ExpectedError {
  /** The call that failed, as in NCCL's source. */
  readonly call: string;
  readonly ncclResult: number;
}

export class OracleCase {
  readonly name: string;
  readonly file: CaseFile;
  readonly expected: Readonly<Record<string, unknown>>;
  /** Text of the XML files by name. */
  readonly files: ReadonlyMap<string, string>;
  #parameters: Parameters | undefined;
  #hosts: readonly OracleHost[] | undefined;
  readonly #graphs = new Map<LocalSystem, HostGraphs>();
  #merged: Merged | undefined;
  #tuning: Tuning | undefined;

  /** @throws InputError where `case.json` or `expected.json` is not of the form that the oracle has. */
  constructor(input: OracleInput) {
    this.name = input.name;
    this.file = toCaseFile(input);
    if (!isRecord(input.expected)) throw misshapen(input.name, 'expected.json is no object');
    this.expected = input.expected;
    this.files = input.files;
  }

  /** The failure that NCCL answered with, if it did. */
  get expectedError(): ExpectedError | undefined {
    const { error } = this.expected;
    if (!isRecord(error)) return undefined;
    return { call: String(error['call']), ncclResult: Number(error['ncclResult']) };
  }

  get parameters(): Parameters {
    const collnet = this.file.collnet ? { NCCL_COLLNET_ENABLE: '1' } : {};
    return (this.#parameters ??= parametersFromEnvironment({ ...this.file.env, ...collnet }, this.file.nccl).parameters);
  }

  /**
   * Every distinct machine of the cluster, as its ranks see it.
   *
   * @throws TcclError where the planner refuses one.
   */
  get hosts(): readonly OracleHost[] {
    return (this.#hosts ??= [...new Set(this.file.nodes.map((node) => node.xml))].map((xml) => this.#host(xml)));
  }

  /**
   * The graphs that the search finds for one of the {@link hosts}.
   *
   * @throws TcclError where it fails.
   */
  graphsOf(local: LocalSystem): HostGraphs {
    let graphs = this.#graphs.get(local);
    if (graphs === undefined) {
      graphs = searchHost(local, this.parameters, { collnet: this.file.collnet, ...this.#graphFile() });
      this.#graphs.set(local, graphs);
    }
    return graphs;
  }

  /**
   * The channels through all ranks.
   *
   * @throws TcclError where hosts do not fit together.
   */
  get merged(): Merged {
    return (this.#merged ??= this.#merge());
  }

  /** The machine that each kind of node in {@link merged} is. */
  readonly machines = new Map<NodeContribution, LocalSystem>();

  /**
   * The tuning model.
   *
   * @throws TcclError where variables name algorithms or protocols that there are not.
   */
  get tuning(): Tuning {
    return (this.#tuning ??= tune(this.merged, this.parameters));
  }

  #merge(): Merged {
    const hosts = new Map(
      this.hosts.map(({ xml, systems }) => {
        const nodes = systems.map((local) => {
          const node = contributionOf(local, this.graphsOf(local), this.parameters);
          this.machines.set(node, local);
          return node;
        });
        return [xml, { nRanks: systems.reduce((sum, { ranks }) => sum + ranks.length, 0), nodes }];
      }),
    );
    const runs = this.file.nodes.flatMap(({ xml, count }) => {
      const host = hosts.get(xml);
      return host === undefined ? [] : [{ host, count }];
    });
    return mergeHosts(runs, this.parameters);
  }

  #graphFile(): { graphFile?: XmlElement } {
    const fileName = this.file.env['NCCL_GRAPH_FILE'];
    if (fileName === undefined) return {};
    const text = this.files.get(fileName);
    if (text === undefined) throw misshapen(this.name, `${fileName} is missing`);
    return { graphFile: parseXml(text, { fileName }).root };
  }

  #host(xml: string): OracleHost {
    const text = this.files.get(xml);
    if (text === undefined) throw misshapen(this.name, `${xml} is missing`);
    const { root, notes } = parseXml(text, { fileName: xml });
    const refused = notes.find(({ effect }) => effect === 'refuse');
    if (refused !== undefined)
      throw new InputError('CONTENT', describeNote(refused, xml), { ncclResult: ncclResults.InternalError });
    assignHost(root, 0x1000n);
    const system = buildSystem(withoutEmptyBranches(root), { parameters: this.parameters });
    return { xml, systems: localSystems(system, this.parameters, this.file.nRanks) };
  }
}

/** One machine of a cluster, by its file. */
export interface OracleHost {
  readonly xml: string;
  readonly systems: readonly LocalSystem[];
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function toCaseFile({ name, case: file }: OracleInput): CaseFile {
  if (!isRecord(file)) throw misshapen(name, 'case.json is no object');
  const { nodes, env, collnet, nRanks, nccl, omitted } = file;
  const isNode = (node: unknown): node is CaseFile['nodes'][number] =>
    isRecord(node) && typeof node['xml'] === 'string' && typeof node['count'] === 'number';
  if (!Array.isArray(nodes) || !nodes.every(isNode)) throw misshapen(name, 'case.json has no list of nodes {xml, count}');
  if (typeof nRanks !== 'number') throw misshapen(name, 'case.json has no nRanks');
  return {
    nodes,
    nRanks,
    nccl: typeof nccl === 'string' ? nccl : defaultVersion,
    env: isRecord(env) ? Object.fromEntries(Object.entries(env).map(([variable, value]) => [variable, String(value)])) : {},
    collnet: collnet === true,
    omitted: Array.isArray(omitted) ? omitted.map(String) : [],
  };
}

function misshapen(name: string, problem: string): TcclError {
  return new InputError('CONTENT', `${name}: ${problem}`);
}
