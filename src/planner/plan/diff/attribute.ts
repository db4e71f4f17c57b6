import { TcclError } from '../../../errors.js';
import { contributionOf } from '../../graph/merge/contribution.js';
import type { HostContribution } from '../../graph/merge/contribution.js';
import type { Parameters } from '../../parameters.js';
import { type ChangedRule, rulesBetween } from '../../versions/describe.js';
import { lastRuleOf, mixedVersion, positionOf } from '../../versions/rules.js';
import { type Cluster, prepareCluster, type PreparedHosts, type PrepareOptions } from '../cluster.js';
import { planPrepared } from '../plan.js';
import type { PredictedRow } from '../prediction.js';
import { comparePlans, type Difference, type Side } from './compare.js';
import type { Cost } from './cost.js';
import { changedCalls, type PredictedCall, type PredictedCost, predictSide } from './predicted-cost.js';
import { sideOf } from './side.js';

/** Effect on a cluster of one rule that changed between two versions of NCCL. */
export interface RuleEffect {
  /** Mostly one; several where no plan is possible with only some of them. */
  readonly rules: readonly ChangedRule[];
  /** Figures that differ when only these rules change, rules of earlier decisions being those of the newer version. */
  readonly differences: readonly Difference[];
  /** Calls with another time or algorithm. */
  readonly costs: readonly Cost[];
  /** Of the calls to simulate, those with another time. */
  readonly predicted: readonly PredictedCost[];
}

/** Options of a comparison of two versions of NCCL. */
export interface Upgrade {
  readonly cluster: Cluster;
  readonly parameters: Parameters;
  readonly from: string;
  readonly to: string;
  /** Sizes at which times are compared, bytes. */
  readonly sizes: readonly number[];
  /** Calls whose simulated times are compared, such as messages between pairs, for which NCCL has no model. */
  readonly calls?: readonly PredictedCall[];
  readonly options?: PrepareOptions;
}

/**
 * Finds the rules behind the differences of two versions, by switching the changed rules in the order of NCCL's decisions. Ranges
 * of rules with the same plan at both ends are skipped, so that few plans are made.
 *
 * @throws as planning does, where either version fails on the cluster
 */
export function ruleEffects(upgrade: Upgrade): RuleEffect[] {
  const changed = rulesBetween(upgrade.from, upgrade.to);
  const way = new IntermediatePlans(upgrade);
  // Counts of rules up to each changed one.
  const stops = [0, ...changed.map(({ name }) => positionOf(name) + 1)];
  const look = (first: number, last: number): RuleEffect[] => {
    const rules = changed.slice(first, last);
    if (rules.length === 0) return [];
    const [from, to] = [stops[first] ?? 0, stops[last] ?? 0];
    const { differences, costs } = comparePlans(way.at(from), way.at(to), upgrade.sizes);
    const predicted = changedCalls(upgrade.calls ?? [], way.predictedAt(from), way.predictedAt(to));
    if (differences.length === 0 && costs.length === 0 && predicted.length === 0) return [];
    if (rules.length === 1) return [{ rules, differences, costs, predicted }];
    const middle = middleFirst(first, last).find((stop) => way.isPossible(stops[stop] ?? 0));
    return middle === undefined ? [{ rules, differences, costs, predicted }] : [...look(first, middle), ...look(middle, last)];
  };
  return look(0, changed.length);
}

/** The numbers between two others, the middle ones first. */
function middleFirst(first: number, last: number): number[] {
  const middle = (first + last) / 2;
  return Array.from({ length: last - first - 1 }, (_, index) => first + 1 + index).sort(
    (a, b) => Math.abs(a - middle) - Math.abs(b - middle),
  );
}

/** Plans between one version and the other, each made once, with shared parts. */
class IntermediatePlans {
  readonly #upgrade: Upgrade;
  readonly #sides = new Map<number, Side>();
  readonly #predicted = new Map<number, readonly (PredictedRow | undefined)[]>();
  readonly #searched = new Map<number, readonly PreparedHosts[]>();

  constructor(upgrade: Upgrade) {
    this.#upgrade = upgrade;
  }

  /** The plan with the first `count` rules switched. */
  at(count: number): Side {
    const known = this.#sides.get(count);
    if (known !== undefined) return known;
    const made = this.#make(count);
    this.#sides.set(count, made);
    return made;
  }

  /** Predictions for the calls of the comparison, with the first `count` rules switched. */
  predictedAt(count: number): readonly (PredictedRow | undefined)[] {
    const known = this.#predicted.get(count) ?? predictSide(this.at(count), this.#upgrade.calls ?? []) ?? [];
    this.#predicted.set(count, known);
    return known;
  }

  isPossible(count: number): boolean {
    try {
      this.at(count);
      return true;
    } catch (error) {
      if (error instanceof TcclError) return false;
      throw error;
    }
  }

  #make(count: number): Side {
    const parameters = this.#parametersAt(count);
    const merged = lastRuleOf('Channels of all ranks');
    if (count > merged) {
      const { plan, ...side } = this.at(merged);
      return { ...side, plan: { ...plan, parameters } };
    }
    const searched = lastRuleOf('Channel search');
    const prepared = this.#search(Math.min(count, searched));
    const hosts = count <= searched ? prepared : contributed(prepared, parameters);
    return sideOf('', hosts, planPrepared(hosts, parameters));
  }

  #search(count: number): readonly PreparedHosts[] {
    const { cluster, options } = this.#upgrade;
    const known = this.#searched.get(count) ?? prepareCluster(cluster, this.#parametersAt(count), options);
    this.#searched.set(count, known);
    return known;
  }

  #parametersAt(count: number): Parameters {
    const { parameters, from, to } = this.#upgrade;
    return { ...parameters, ncclVersion: mixedVersion(from, to, count) };
  }
}

/** Searched hosts, with the contributions of their ranks by other rules. */
function contributed(prepared: readonly PreparedHosts[], parameters: Parameters): PreparedHosts[] {
  const hosts = new Map<HostContribution, HostContribution>();
  return prepared.map((each) => {
    const nodes = each.systems.flatMap((local, index) => {
      const graphs = each.host.nodes[index]?.graphs;
      return graphs === undefined ? [] : [contributionOf(local, graphs, parameters)];
    });
    const host = hosts.get(each.host) ?? { ...each.host, nodes };
    hosts.set(each.host, host);
    return { ...each, host };
  });
}
