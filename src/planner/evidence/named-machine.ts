import { counted } from '../../counted.js';
import { InputError } from '../../errors.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import { findMachine, type Machine, machines } from '../topology/catalogue/machines.js';
import { descendants, type XmlElement } from '../topology/xml/tree.js';
import type { AgreedGpus } from './agree.js';
import { contradiction, fileOf, type HostFacts, type Sourced } from './facts.js';
import { gpuOfDevice } from './models.js';

/** A machine of the catalogue, and the reasons for it. */
export interface NamedMachine {
  readonly machine: Machine;
  readonly assumed: readonly string[];
}

/**
 * The machine of the catalogue that names alone give: the product's or the cloud's, else the only one of its makers with so many
 * GPUs of the model.
 *
 * @throws InputError where several or none fit, with those that do, and where a name contradicts another output
 */
export function namedMachine(host: HostFacts, gpus: AgreedGpus): NamedMachine {
  const named = machineByNames(host);
  if (named !== undefined) {
    checkNamed(host, gpus, named.claim, named.machine);
    return { machine: named.machine, assumed: [`the machine is ${named.machine.name}, by its name (${named.product})`] };
  }
  const { model, count } = gpus;
  if (model === undefined) throw unknownModel(host, gpus);
  const fitting = machines.map(shapeOf).filter((shape) => isShape(shape, model, count));
  const makers = fitting.filter(({ machine: { name, origin } }) => origin === undefined && !name.startsWith('ac922'));
  const nics = activePorts(host);
  const withNics = makers.filter((shape) => shape.nics === nics);
  const plain = makers.filter(({ machine: { name } }) => !name.endsWith('-storage') && !name.endsWith('-nvl72'));
  const [chosen, another] = withNics.length === 1 ? withNics : plain.length > 0 ? plain : fitting;
  const others = fitting.filter((shape) => shape !== chosen).map(({ machine: { name } }) => name);
  if (chosen !== undefined && another === undefined) {
    const what = `${count ?? chosen.gpus} x ${model.name}`;
    const also =
      others.length === 0
        ? ''
        : `; ${others.join(', ')} ${others.length === 1 ? 'has' : 'have'} as many: give that name if it is one`;
    return { machine: chosen.machine, assumed: [`the machine is ${chosen.machine.name} (${what})${also}`] };
  }
  const box = chosen === undefined ? findMachine(`pcie-${count ?? 0}-${model.id}`) : undefined;
  if (box !== undefined && (model.nvlink === 'none' || model.nvlink === 'pair'))
    return { machine: box, assumed: [`the machine is ${box.name}: ${box.description}, as the catalogue has it`] };
  throw new InputError('CONTENT', `${describeFit(model, count, fitting)}: ${REMEDY}`, placeOf(host));
}

const REMEDY =
  'add the output of nvidia-smi topo -m of that host, or give the file that tccl topo detect -o machine.xml writes there';

function describeFit(model: GpuModel, count: number | undefined, fitting: readonly Shape[]): string {
  const what = count === undefined ? `${model.name} in a number that nothing names` : `${count} x ${model.name}`;
  if (fitting.length > 0)
    return `${what} fits several machines (${fitting.map(({ machine }) => machine.name).join(', ')}): give that name, or`;
  const near = machines.map(shapeOf).filter((shape) => isShape(shape, model, undefined) && shape.gpus <= 16);
  const names = near
    .filter(({ machine: { name, origin } }) => origin === undefined && !name.endsWith('-storage'))
    .map(({ machine, gpus }) => `${machine.name} has ${gpus}`);
  return `no machine of the catalogue has ${what}${names.length === 0 ? '' : ` (${names.join(', ')})`}`;
}

function unknownModel(host: HostFacts, { unknown, count }: AgreedGpus): InputError {
  const gpus = count === undefined ? 'GPUs' : counted(count, 'GPU');
  if (unknown !== undefined)
    return new InputError(
      'CONTENT',
      `the catalogue has no GPU ${unknown} (tccl topo list shows those it has): give the file that tccl topo detect -o machine.xml writes on that host`,
      placeOf(host),
    );
  const product = host.claims.flatMap(({ value }) => value.products)[0];
  const fitting = machines.map(shapeOf).filter((shape) => shape.gpus === count);
  const names = fitting.map(({ machine }) => machine.name).join(', ');
  const why =
    product === undefined
      ? `nothing names the model of the ${gpus}`
      : `the catalogue has no machine ${product}, and nothing names its GPUs`;
  return new InputError(
    'CONTENT',
    `${why}${names === '' ? '' : ` (machines with ${gpus}: ${names})`}: add the output of nvidia-smi -L, or describe them with --hardware`,
    placeOf(host),
  );
}

function placeOf(host: HostFacts): { readonly line?: number; readonly file?: string } {
  const [first] = [...host.gpuLists, ...host.claims, ...host.trees, ...host.pciLists, ...host.nvlinks];
  return first === undefined ? {} : { ...fileOf(host.files, first.place), line: first.place.line };
}

/** Active RDMA devices that tools list; undefined where none does. */
function activePorts({ ports }: HostFacts): number | undefined {
  if (ports.length === 0) return undefined;
  return new Set(ports.filter(({ value }) => value.isActive !== false).map(({ value }) => value.device)).size;
}

interface NamedClaim {
  readonly machine: Machine;
  readonly product: string;
  readonly claim: Sourced<unknown>;
}

/** The first machine of the catalogue among names of products and instances. */
export function machineByNames({ claims }: HostFacts): NamedClaim | undefined {
  for (const claim of claims)
    for (const product of claim.value.products) {
      const machine = machineOfProduct(product);
      if (machine !== undefined) return { machine, product, claim };
    }
  return undefined;
}

/** `NVIDIA DGX H100`, `DGXA100 920-23687-2530-000`, `HGX B200`, `8 x p5.48xlarge`. */
export function machineOfProduct(product: string): Machine | undefined {
  const words = product
    .toLowerCase()
    .replace(/^\d{1,4} ?[x×] ?/, '')
    .replaceAll(/\bnvidia\b|[_,]/g, ' ')
    .trim()
    .split(/\s+/);
  const plain = product.trim().toLowerCase();
  for (const name of [plain, plain.replace(/^nvidia[ -]/, '')]) {
    const machine = findMachine(name);
    if (machine !== undefined) return machine;
  }
  for (let length = words.length; length > 0; length--) {
    const name = words
      .slice(0, length)
      .join('-')
      .replaceAll(/^-|-$|--+/g, '')
      .replace(/^([dh]gx)([a-z]\d)/, '$1-$2');
    if (!/^(?:[dh]gx|gh200|gb[23]00|p\d|a\d|nd|nc|standard|bm)/.test(name)) continue;
    const machine = [name, `${name}-8`, name.replace(/-8-?gpu$/, '-8'), name.replace(/^hgx/, 'dgx')]
      .map(findMachine)
      .find((found) => found !== undefined);
    if (machine !== undefined) return machine;
  }
  return undefined;
}

/** @throws InputError where the named machine has other GPUs than another output says */
function checkNamed(host: HostFacts, { model, count }: AgreedGpus, claim: Sourced<unknown>, machine: Machine): void {
  const shape = shapeOf(machine);
  const [other = claim] = [...host.gpuLists, ...host.matrices, ...host.trees, ...host.claims.filter((each) => each !== claim)];
  const says = `says ${machine.name} with ${shape.gpus} x ${shape.model ?? 'GPUs'}`;
  if (count !== undefined && count !== shape.gpus && shape.gpus <= 16)
    throw contradiction(host.files, [claim, says], [other, `has ${counted(count, 'GPU')}`]);
  const family = (id: string) => id.split('-')[0];
  if (model !== undefined && shape.modelId !== undefined && family(model.id) !== family(shape.modelId))
    throw contradiction(host.files, [claim, says], [other, `says ${model.name}`]);
}

/** GPUs and NICs of a machine. */
interface Shape {
  readonly machine: Machine;
  readonly gpus: number;
  readonly nics: number;
  readonly modelId: string | undefined;
  readonly model: string | undefined;
}

const shapes = new Map<string, Shape>();

function shapeOf(machine: Machine): Shape {
  const known = shapes.get(machine.name);
  if (known !== undefined) return known;
  const elements = [...descendants(machine.build())];
  const gpus = elements.filter(({ name }) => name === 'gpu');
  const model = modelOfElement(gpus[0]?.parent);
  const shape: Shape = {
    machine,
    gpus: gpus.length,
    nics: elements.filter(({ name }) => name === 'net').length,
    modelId: model?.id,
    model: model?.name,
  };
  shapes.set(machine.name, shape);
  return shape;
}

function modelOfElement(pci: XmlElement | undefined): GpuModel | undefined {
  return gpuOfDevice(Number(pci?.attributes.get('device')));
}

function isShape({ gpus, modelId }: Shape, model: GpuModel, count: number | undefined): boolean {
  return modelId === model.id && (count === undefined || gpus === count);
}
