import { InvalidArgumentError } from '../../errors.js';
import { named } from '../plan/machine-edits.js';
import type { XmlElement } from '../topology/xml/tree.js';
import { list } from './format.js';

/** A word that may name an RDMA device, with its port; no value of a variable, and no network interface. */
const device =
  /(?<![\w./:^-]|=\S*|\bNCCL_\w+\s+(?:(?:is|be|being|set|to|as|with|at)\s+)*)(?!(?:eth|en[ops]|ib|bond|docker|wlan|br)\d)([a-z]\w*\d\w*)(?::\d+)?(?![\w./-]*\w)/gi;
/** Devices with names of this form have no number but that which NCCL gives them. */
const numbered = /^mlx\d+_\d+$/;
/** Devices at most that an error lists. */
const MOST_LISTED = 12;

/**
 * A question with numbers of NICs in place of names of devices: `mlx5_bond_0` becomes `NIC 4` if it is that of the first machine.
 *
 * @throws InvalidArgumentError for a name such as `mlx5_9` that no machine has, if they name their devices so
 */
export function withNicNumbers(text: string, machines: Iterable<XmlElement>): string {
  const numbers = new Map<string, string>();
  for (const machine of machines)
    for (const { attributes } of named(machine, 'net')) {
      const [name = '', number = ''] = [attributes.get('name')?.toLowerCase(), attributes.get('dev')];
      if (name !== '' && !numbers.has(name)) numbers.set(name, number);
    }
  return text.replaceAll(device, (written, word: string) => {
    const name = word.toLowerCase();
    const number = numbers.get(name);
    if (number !== undefined) return `NIC ${number}`;
    if (!numbered.test(name) || ![...numbers.keys()].some((other) => numbered.test(other))) return written;
    const there = [...numbers.keys()];
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `no network device ${word}: there are ${there.length > MOST_LISTED ? `${there.slice(0, MOST_LISTED).join(', ')} …` : list(there)}`,
    );
  });
}
