import { InputError } from '../../errors.js';
import { readMscclXml } from './msccl.js';
import { readMscclppJson } from './mscclpp.js';
import type { AnyProgram } from './program.js';

/**
 * Reads an algorithm: MSCCL's XML or MSCCL++'s JSON, by its first character.
 *
 * @throws InputError with line or path
 */
export function readProgram(text: string): AnyProgram {
  const first = text.trimStart()[0];
  if (first === '<') return readMscclXml(text);
  if (first === '{') return readMscclppJson(text);
  throw new InputError('SYNTAX', 'neither XML of MSCCL (<algo …>) nor JSON of MSCCL++ ({ "gpus": … })');
}
