import { completeQuestion } from '../planner/explain/grammar/complete.js';
import { ncclVariables } from '../planner/nccl-variables.js';
import { parameterTable } from '../planner/parameters.js';
import { machines } from '../planner/topology/catalogue/machines.js';
import { variableMeanings } from '../planner/variable-meanings.js';
import type { Known, Request } from './messages.js';
import { serve } from './worker.js';

/** The script of the page's workers: serves requests, and has the tables that the page would else have twice. */
const answer = serve((reply) => globalThis.postMessage(reply));
globalThis.onmessage = ({ data }: MessageEvent<Request | { readonly question: string }>) => {
  if ('question' in data)
    post({ kind: 'completions', completions: completeQuestion(data.question).map(({ text, detail }) => [text, detail]) });
  else answer(data);
};
const docs = new Map(parameterTable.map(({ variable, doc }) => [variable, doc]));
post({
  kind: 'tables',
  machines: machines.map(({ name, description }) => [name, description]),
  variables: [...ncclVariables].map((name) => [name, docs.get(name) ?? variableMeanings.get(name) ?? '']),
});

function post(known: Known): void {
  globalThis.postMessage(known);
}
