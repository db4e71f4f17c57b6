import { utf8Text } from './utf8.js';

/** Kinds of files about a job. */
export type DiagnosticKind =
  | 'log'
  | 'pickle'
  | 'json'
  | 'ras'
  | 'topology matrix'
  | 'NVLink status'
  | 'ports'
  | 'topology'
  | 'inspector'
  | 'trace'
  | 'other';

const forms: readonly (readonly [kind: DiagnosticKind, form: RegExp])[] = [
  ['topology', /^\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--[^>]{0,2000}-->\s*)?<(?:system|graphs)\b/],
  ['topology matrix', /^[^\n]{0,40}(?:\b|m)GPU0\b[^\n]{0,4000}(?:CPU Affinity|NUMA Affinity|\bGPU1\b)/m],
  ['NVLink status', /^GPU \d+: [^\n]{3,120}\n\s+Link \d+: /m],
  [
    'ports',
    /^(?:CA '[^'\n]{1,40}'|hca_id:\s|Infiniband device '[^'\n]{1,40}' port \d+ status|(?:\d+: )?link \S{1,40}\/\d+ [^\n]{0,200}state \w)/m,
  ],
  ['inspector', /^\s*\{\s*"header":\s*\{[^{}]{0,400}\},\s*"metadata":/],
  ['trace', /^\s*\[\s*(?:\{"name":|\{"ph":|\{"cat":)/],
  ['ras', /^(?:Job summary|Gathering data about the RAS network|Group +Comms +Nodes +Ranks)/m],
];

/** Kind of a file, by its first bytes. */
export function classify(head: Uint8Array): DiagnosticKind {
  if (head[0] === 0x80 && (head[1] ?? 0) >= 2 && (head[1] ?? 0) <= 5) return 'pickle';
  if (head.includes(0)) return 'other';
  const text = utf8Text(head);
  const known = forms.find(([, form]) => form.test(text));
  if (known !== undefined) return known[0];
  // A record a line is a log; one value is a file of JSON.
  if (/^\s*\{/.test(text) && !/^\s*\{[^\n]{0,60000}\}\s*\n\s*\{/.test(text)) return 'json';
  return 'log';
}
