import type { AnyToolOutput } from '../../../readers/formats.js';
import type { LogFindingCode } from '../../rules/codes.js';
import type { LogModel } from '../../job/model.js';

type NameOf = AnyToolOutput['tool'];
export type OutputOf<Name extends NameOf> = Extract<AnyToolOutput, { readonly tool: Name }>;

/** The outputs of one tool. */
export function outputsOf<Name extends NameOf>({ tools }: Pick<LogModel, 'tools'>, name: Name): OutputOf<Name>[] {
  return tools.filter((output): output is OutputOf<Name> => output.tool === name);
}

/** ` on node1`, where a heading names the host. */
export function onHost({ host }: { readonly host: string }): string {
  return host === '' ? '' : ` on ${host}`;
}

/** True if a line of the log has one of the findings. */
export function isSeen({ hits }: Pick<LogModel, 'hits'>, ...codes: readonly LogFindingCode[]): boolean {
  return hits.some(({ rule }) => codes.includes(rule.code));
}
