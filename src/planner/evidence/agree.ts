import { counted } from '../../counted.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import { contradiction, type HostFacts, type Sourced } from './facts.js';
import { gpuOfProduct } from '../topology/catalogue/products.js';
import { gpuModelOf, gpusOf, isGpuDescription } from './pci-devices.js';

/** GPUs of a host, on which all its outputs agree. */
export interface AgreedGpus {
  /** Undefined where nothing names one of the catalogue. */
  readonly model: GpuModel | undefined;
  /** Name of a product that the catalogue lacks. */
  readonly unknown: string | undefined;
  readonly count: number | undefined;
}

interface Said<Value> {
  readonly by: Sourced<unknown>;
  readonly value: Value;
  readonly words: string;
}

/**
 * The model and number of GPUs.
 *
 * @throws InputError with both places where two outputs contradict each other
 */
export function agreedGpus(host: HostFacts): AgreedGpus {
  const models = modelsOf(host);
  for (const later of models) {
    const earlier = models.find(({ value }) => !areSame(value, later.value));
    if (earlier !== undefined && models.indexOf(earlier) < models.indexOf(later))
      throw contradiction(host.files, [earlier.by, earlier.words], [later.by, later.words]);
  }
  const counts = countsOf(host);
  const [first] = counts;
  const other = counts.find(({ value }) => value !== first?.value);
  if (first !== undefined && other !== undefined)
    throw contradiction(host.files, [first.by, first.words], [other.by, other.words]);
  const products = host.gpuLists.flatMap(({ value }) => value.map(({ product }) => product)).filter((name) => name !== '');
  const claimed = host.claims.flatMap(({ value }) => value.gpu ?? []);
  const model = models.find(({ value }) => value.isExact)?.value.model ?? models[0]?.value.model;
  return { model, unknown: model === undefined ? [...products, ...claimed][0] : undefined, count: first?.value };
}

interface NamedModel {
  readonly model: GpuModel;
  /** False for names of a family, as `h100` of Slurm. */
  readonly isExact: boolean;
}

function areSame(a: NamedModel, b: NamedModel): boolean {
  if (a.model.id === b.model.id) return true;
  const family = ({ model }: NamedModel) => model.id.split('-')[0];
  return !(a.isExact && b.isExact) && family(a) === family(b);
}

function modelsOf(host: HostFacts): Said<NamedModel>[] {
  const said = (by: Sourced<unknown>, model: GpuModel | undefined, isExact = true): Said<NamedModel>[] =>
    model === undefined ? [] : [{ by, value: { model, isExact }, words: `says ${model.name}` }];
  const once = (all: Said<NamedModel>[]) =>
    all.filter((one, index) => all.findIndex(({ value }) => value.model === one.value.model) === index);
  return [
    ...host.gpuLists.flatMap((list) => once(list.value.flatMap(({ product }) => said(list, gpuOfProduct(product))))),
    ...host.trees.flatMap((tree) => once(gpusOf(tree.value).flatMap((branch) => said(tree, gpuModelOf(branch))))),
    ...host.pciLists.flatMap((list) =>
      once(
        list.value
          .filter(({ description }) => isGpuDescription(description))
          .flatMap(({ description }) => said(list, gpuModelOf({ description }))),
      ),
    ),
    ...host.claims.flatMap((claim) => said(claim, gpuOfProduct(claim.value.gpu ?? ''), claim.source.startsWith('the labels'))),
  ];
}

function countsOf(host: HostFacts): Said<number>[] {
  const said = (by: Sourced<unknown>, value: number): Said<number>[] =>
    value === 0 ? [] : [{ by, value, words: `has ${counted(value, 'GPU')}` }];
  const matrix = host.matrices.flatMap((each) => said(each, each.value.columns.filter((name) => /^GPU\d+$/.test(name)).length));
  const listed = host.gpuLists.flatMap((each) => said(each, each.value.length));
  const status = host.nvlinks.flatMap((each) => said(each, each.value.length));
  const trees = host.trees.flatMap((each) => said(each, gpusOf(each.value).length));
  const claims = host.claims.flatMap((each) => said(each, each.value.count ?? 0));
  const full = [...matrix, ...listed, ...trees, ...claims, ...status];
  // `lspci | grep` and `lspci -s` print a part.
  const most = Math.max(0, ...full.map(({ value }) => value));
  const pci = host.pciLists.flatMap((each) =>
    said(each, each.value.filter(({ description }) => isGpuDescription(description)).length),
  );
  return [...full, ...pci.filter(({ value }) => most === 0 || value > most)];
}
