import { familyOf, gpuModels } from '../../topology/catalogue/gpus.js';
import { findMachine, machines } from '../../topology/catalogue/machines.js';
import { nicModels } from '../../topology/catalogue/nics.js';
import { countOf, NUMBER, type Words } from './phrases.js';

/** PCIe links that a question states. */
export interface PcieInQuestion {
  readonly generation?: 3 | 4 | 5;
  readonly lanes?: 4 | 8;
}

/** GPUs of a model: its id, or the beginning of several (`h100`), and their number if one stands before it. */
export interface NamedGpus {
  readonly model: string;
  readonly count?: number;
}

/** Spellings of machines that are told apart from other words, the longest first. */
const machineNames = machines
  .flatMap(({ name, aliases }) => [name, ...aliases].map((each) => [each.replaceAll('-', '[ -]?'), name] as const))
  .filter(
    ([pattern, name]) =>
      /^(?:dgx|hgx|aws|azure|gcp|oci|gh200|gb[23]00|ac922|coreweave|nebius|lambda|polaris|perlmutter)/.test(name) &&
      // A GPU by itself, without the machine.
      !/^(?:gb200|gb300|gh200|h800|h20)$/.test(pattern),
  )
  .sort((a, b) => b[0].length - a[0].length);

export function takeMachine(words: Words): string | undefined {
  let found: string | undefined;
  const take = (name: string | undefined, text: string): boolean => {
    if (name === undefined) return false;
    found ??= name;
    words.mention('hardware', text, { kind: 'machine', name });
    return true;
  };
  words.take(/\b(gb[23]00)[ -]?nvl[ -]?(\d+)(?:x\d)?\b/, ([text, model = '', size = '']) =>
    take(findMachine(`${model}-nvl${size}`.toLowerCase())?.name, text),
  );
  for (const [pattern, name] of machineNames)
    words.take(new RegExp(`(?<![\\w-])${pattern}s?(?![\\w-])`), ([text]) => take(name, text));
  return found;
}

/** Spellings of GPUs: of a model, or of several that differ by their form (`h100`). */
const gpuSpellings = gpuModels
  .flatMap((model) => [model.id, model.name.toLowerCase(), ...model.aliases].map((spelling) => [spelling, model] as const))
  .concat(gpuModels.flatMap((model) => (model.id.includes('-') ? [[familyOf(model), model] as const] : [])))
  .filter(([spelling]) => !/^(?:rtx|grace)$/.test(spelling))
  .sort((a, b) => b[0].length - a[0].length);

/** `8 x A40`, `4 RTX 4090`, `H100 PCIe`, `A100-SXM4-80GB`. */
export function takeGpuModels(words: Words): NamedGpus[] {
  const found: NamedGpus[] = [];
  for (const [spelling, model] of gpuSpellings)
    words.take(
      new RegExp(
        `(?<![\\w.-])(?:(${NUMBER})\\s*(x|×|\\*)?[\\s-]*)?(?:nvidia[ -]|tesla[ -]|geforce[ -])*${spelling.replaceAll(/[ -]/g, '[ -]?')}s?(?:[ -](?:\\d{2,3} ?gb|hbm\\d?e?))*(?:[ -]?(sxm|pcie|nvl)\\d?)?(?:[ -](?:\\d{2,3} ?gb))?(?:[ -](?:gpus?|cards?))?(?![\\w])`,
        'i',
      ),
      ({ 0: text, 1: digits, 2: times, 3: form, index, input }) => {
        const named = /sxm|pcie|nvl/.test(spelling) ? model.id : familyOf(model);
        const own = form === undefined ? named : `${familyOf(model)}-${form.toLowerCase()}`;
        const id = gpuModels.some((each) => each.id === own) ? own : named;
        // `8 H100 nodes` are nodes, `8xH100 nodes` have eight GPUs each.
        const isOfNodes =
          times === undefined &&
          /^[ -]*(?:nodes?|hosts?|servers?|machines?|box(?:es)?|systems?|instances?|clusters?)\b/i.test(
            input.slice(index + text.length),
          );
        const count = digits === undefined || isOfNodes ? undefined : countOf(digits);
        if (!found.some(({ model: other }) => other === id || other.startsWith(`${id}-`))) {
          found.push({ model: id, ...(count === undefined ? {} : { count }) });
          words.mention('hardware', text, { kind: 'gpu-model', model: id });
          if (count !== undefined) words.mention('count', text, { kind: 'ranks', count });
        }
        // The number is one of nodes: it is counted later.
        return !isOfNodes || digits === undefined;
      },
    );
  return found;
}

const CARD_NOUN =
  '(?:nics?|ports?|hcas?|ib|infini ?band|ethernet|roce(?: ?v?[12])?|cx-?[5-8]|connect-?x-?[5-8]?|mellanox|(?:network |ib )?cards?|adapters?|efa|hdr|ndr|edr|xdr|bluefield)';
const NETWORK_NOUN = `(?:${CARD_NOUN}|links?|networks?|networking|lan|rdma|fabric|interconnects?|rails?)`;

/** Generations of InfiniBand, Gb/s. */
const infiniBand: Readonly<Record<string, number>> = { fdr: 56, edr: 100, hdr: 200, ndr: 400, xdr: 800 };

/** Network cards that a text states: `8 x 100 Gb/s NICs`, `NDR`, `two ConnectX-6`. None of these is a measurement. */
export function takeNics(words: Words): { readonly nicMbps: number | undefined; readonly nicCount: number | undefined } {
  let nicMbps: number | undefined;
  let nicCount: number | undefined;
  const UNIT = '(?:g|gb|gbe|gbit|gbps|gb/s|gbit/s|gigabit)(?:/s)?';
  const COUNT = `(?:(${NUMBER})(?:[ -]*(?:x|×|\\*)[ -]*|[ -]+))?(?:of )?`;
  const take = (text: string, count: string | undefined, mbps: number): true => {
    words.mention('hardware', text, { kind: 'nic-speed', mbps });
    nicMbps ??= mbps;
    if (count !== undefined) nicCount ??= countOf(count);
    return true;
  };
  // `400G instead of 200G NICs`: the first are asked about.
  words.take(
    new RegExp(
      `(?<![\\w.])(\\d{2,4})\\s?${UNIT}(?: ${NETWORK_NOUN})? (?:instead of|rather than|in place of|over) \\d{2,4}\\s?${UNIT}(?= ${NETWORK_NOUN}\\b)`,
    ),
    ([text, digits]) => take(text, undefined, Number(digits) * 1000),
  );
  // `2 ConnectX-6 200Gb/s`, `InfiniBand at 400 Gb/s`.
  words.take(
    new RegExp(
      `(?<![\\w.])(?:(${NUMBER})[ -]*(?:x|×|\\*)?[ -]*)?(?:mellanox |nvidia )?(?:connect-?x|cx)[ -]?([5-8])(?: ?(?:dx|lx|ex|vpi))?s?\\b(?:[ ,(-]*(?:at )?(\\d{2,3}) ?(?:g|gb|gbe|gbps|gb/s)\\b)?`,
    ),
    ([text, count, number = '', digits]) => {
      const model = nicModels.find(({ id }) => id === `connectx-${number}`);
      if (digits !== undefined) return take(text, count, Number(digits) * 1000);
      // The model alone says which speed it can have, not which it has.
      if (count === undefined || model === undefined) return false;
      return take(text, count, model.speedMbps);
    },
  );
  // `4 x 200G NICs`, `one 100GbE port`; the noun may miss behind a number of cards: `8x400G`.
  words.take(
    new RegExp(
      `(?<![\\w.-])${COUNT}(\\d{2,4})\\s?${UNIT}[ -](?:per |each |of |a |our |my |the )*(?:single[ -]port |dual[ -]port |mellanox |nvidia )*(?=${NETWORK_NOUN}\\b)`,
    ),
    ([text, count, digits]) => {
      // Bytes are written GB/s and are no speed of a port, unless it is too large to be one.
      if (/GB(?:\/s|ps)/.test(text) && Number(digits) < 100) return false;
      return take(text, count, Number(digits) * 1000);
    },
  );
  words.take(
    new RegExp(`(?<![\\w.])(${NUMBER})\\s?[x×*]\\s?(\\d{2,4})\\s?(?:g|gb|Gb|gbe|Gbit|gbps|Gbps|Gb/s)(?![\\w/])`),
    ([text, count, digits]) => (/GB/.test(text) ? false : take(text, count, Number(digits) * 1000)),
  );
  words.take(new RegExp(`(?<![\\w.-])${COUNT}(\\d{2,4}) ?(?:gbe|gige|g ethernet)\\b`), ([text, count, digits]) =>
    take(text, count, Number(digits) * 1000),
  );
  words.take(
    new RegExp(`(?<![\\w.-])${COUNT}(fdr|edr|hdr|ndr|xdr)(?: ?(100|200|400|800))?\\b`),
    ([text, count, name = '', digits]) =>
      take(text, count, digits === undefined ? (infiniBand[name.toLowerCase()] ?? 0) * 1000 : Number(digits) * 1000),
  );
  words.take(
    new RegExp(
      `(?<=\\b(?:infini ?band|ib|roce|ethernet|nics?|hcas?|efa|networks?)(?: (?:network|interconnect|speed|bandwidth))?(?: ?(?:at|of|is|are|with|,|\\(|(?:runs?|goes|trains?|negotiates?) (?:only )?at|has|have|gets?))?(?: only)? ?)(\\d{2,4}) ?(?:gbe|gbps|gbit/s|gb/s|g)\\b`,
    ),
    ([text, digits]) => (/GB(?:\/s|ps)/.test(text) ? false : take(text, undefined, Number(digits) * 1000)),
  );
  return { nicMbps, nicCount };
}

/** Generation and lanes of PCIe links. */
export function takePcie(words: Words): PcieInQuestion {
  let generation: 3 | 4 | 5 | undefined;
  let lanes: 4 | 8 | undefined;
  words.take(/\b(?:pci-?e?\s*)?gen(?:eration)?\s?-?([345])\b|\bpci-?e\s*([345])(?:\.0)?\b/, ([text, one, other]) => {
    generation = Number(one ?? other) as 3 | 4 | 5;
    words.mention('hardware', text, { kind: 'pcie', generation });
    return true;
  });
  words.take(/(?<![\w.])x([48])\b(?!\s*(?:nics?|gpus?|h\d|a\d))/, ([text, digits]) => {
    lanes = Number(digits) as 4 | 8;
    words.mention('hardware', text, { kind: 'pcie-lanes', lanes });
    return true;
  });
  return { ...(generation === undefined ? {} : { generation }), ...(lanes === undefined ? {} : { lanes }) };
}

/** `4 NVLinks`, `NV12`: NVLinks of a GPU or between two. */
export function takeNvlinks(words: Words): number | undefined {
  let count: number | undefined;
  // Of a generation: `NVLink 4`, `NVLink 3.0`.
  words.take(/(?<=\bnv-?\s?links?[ -]?)[2345](?:\.0)?(?![\w.])/, () => true);
  words.take(new RegExp(`(?<![\\w.])(${NUMBER})[ -]*(?:x[ -]?)?nv-?\\s?links\\b|\\bnv(\\d{1,2})\\b`), ([text, digits, short]) => {
    count ??= countOf(digits ?? short ?? '');
    words.mention('hardware', text, { kind: 'nvlinks', count: countOf(digits ?? short ?? '') });
    return true;
  });
  return count;
}
