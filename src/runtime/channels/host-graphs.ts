import { inFile } from '../../errors.js';
import { graphLines } from '../../planner/graph/graph-text.js';
import { graphsToXml } from '../../planner/graph/graph-xml.js';
import type { HostContribution } from '../../planner/graph/merge/contribution.js';
import { NodeTransports } from '../../planner/graph/transports/node-transports.js';
import { defaultParameters, type Parameters } from '../../planner/parameters.js';
import { prepareHost, type PrepareOptions } from '../../planner/plan/cluster.js';
import { buildSystem } from '../../planner/topology/build/build-system.js';
import { withoutEmptyBranches } from '../../planner/topology/combine/prune.js';
import { descendants, type XmlElement } from '../../planner/topology/xml/tree.js';
import { writeXml } from '../../planner/topology/xml/write.js';
import type { ReachedNic } from '../algorithms/connections/channels.js';

type GraphFile = NonNullable<PrepareOptions['graphFile']>;

/** The decisions of one host. */
export interface HostGraphs {
  readonly contribution: HostContribution;
  /** By channel of its ring graph × rank of the host: the NIC that the rank would use on it. */
  readonly ringNics: readonly (readonly ReachedNic[])[];
  /** Lines of the log about its graphs, in NCCL's form. */
  readonly lines: readonly string[];
  /** Text for TCCL_GRAPH_DUMP_FILE. */
  readonly xml: () => string;
}

/**
 * Searches the channels of one host of a communicator.
 *
 * @param machine its topology, whose GPUs are the host's ranks from 0 on
 * @param graphFile channels that are taken instead of a search
 * @param parameters with which aggregators stand for a network that reduces: every NIC reaches one
 * @throws InputError where there is no way for channels
 */
export function searchMachine(
  machine: XmlElement,
  nRanks: number,
  file: string | undefined,
  { graphFile, parameters = defaultParameters }: { readonly graphFile?: GraphFile; readonly parameters?: Parameters } = {},
): HostGraphs {
  return inFile(file, () => {
    if (parameters.collnetEnable === 1)
      for (const { name, attributes } of descendants(machine)) if (name === 'net') attributes.set('coll', '1');
    const system = buildSystem(withoutEmptyBranches(machine), { parameters });
    const { host, systems } = prepareHost(system, 'this host', nRanks, parameters, graphFile === undefined ? {} : { graphFile });
    const names = new Map(
      [...descendants(machine)].flatMap(({ name, attributes }) =>
        name === 'net' ? [[Number(attributes.get('dev')), attributes.get('name') ?? '']] : [],
      ),
    );
    const nChannels = Math.min(...host.nodes.map(({ graphs }) => graphs.ring.nChannels));
    const nicsOn = (channel: number): ReachedNic[] => {
      const nics: ReachedNic[] = [];
      host.nodes.forEach(({ graphs, ranks }, node) => {
        const local = systems[node];
        if (local === undefined) return;
        const transports = new NodeTransports(local, parameters);
        for (const rank of ranks) {
          const { dev, relay } = transports.net(graphs.ring, channel, rank, 'send');
          nics[rank] = { dev, name: names.get(dev) ?? '', ...(relay === undefined ? {} : { relay }) };
        }
      });
      return nics;
    };
    return {
      contribution: host,
      ringNics: Array.from({ length: nChannels }, (_, channel) => nicsOn(channel)),
      lines: host.nodes.flatMap(({ graphs }, node) => {
        const local = systems[node];
        return local === undefined ? [] : [...graphLines(graphs.ring, local), ...graphLines(graphs.tree, local)];
      }),
      xml: () =>
        host.nodes
          .flatMap(({ graphs }, node) => {
            const local = systems[node];
            return local === undefined ? [] : [writeXml(graphsToXml(graphs, local))];
          })
          .join(''),
    };
  });
}
