// Prints docs/reference/log-findings.md from the table of rules: node scripts/log-findings.mjs > docs/reference/log-findings.md
import { versionsOf } from '../dist/planner/log/rules/versions-of.js';
import { lineRules } from '../dist/planner/log/rules/all.js';

const ofJob = {
  'init-unfinished':
    'ranks wrote no `Init COMPLETE`, with the missing or the least advanced ranks; a remark if the log is an excerpt or the job ended well',
  'rank-not-logged': 'init finished, but the files of some ranks were not given',
  'version-mixed': 'ranks have different versions of NCCL',
  'environment-differs': 'processes have different settings',
  'ring-open': 'a ring does not visit every rank once',
  'ring-contradiction': 'two ranks contradict each other about a ring',
  'tree-contradiction': 'two ranks contradict each other about a tree',
  'channels-differ': 'ranks have different numbers of channels',
  'shm-despite-nvlink': "GPUs on a host with NVLink exchange data through the host's memory",
  'network-inside-host': 'ranks of one host exchange data over the network',
  'socket-despite-ib': 'hosts use TCP though some found RDMA devices',
  'no-rdma': 'hosts use TCP',
  'network-mixed': 'ranks use different networks',
  'gdr-off': 'NICs do not reach GPU memory',
  'gdr-mixed': 'some ranks have no GPUDirect RDMA',
  'nvls-mixed': 'some GPUs have no NVLink SHARP, so none uses it',
  'nic-uneven': 'a NIC carries twice the channels of another',
  'nic-unused': 'NICs carry nothing',
  'p2p-refused': 'the driver refuses P2P',
  'plugin-old': 'the network plugin is older than NCCL, found no device, and NCCL fell back to sockets',
  'fabric-over-tcp': 'NCCL uses TCP over the IP interface of Slingshot or InfiniBand',
  'nvlink-asymmetric': 'NVLink between two GPUs is slower in one direction',
  'nvlink-degraded': 'a GPU has fewer NVLinks than others of its kind',
  'pcie-slow': "a GPU's PCIe link is slower than those of others of its kind",
  'calls-differ': 'ranks call different collectives as the same number',
  'rank-behind': 'ranks hang in an earlier collective than the others',
  'rank-late': 'a rank comes last to most collectives, and the others wait for it',
  'rank-absent': 'the watchdog of some ranks did not give up',
  'collective-stuck': 'all ranks hang in the same collective',
  'message-unmatched': 'a rank waits for a message that the other one does not send or receive',
  'group-waits': 'ranks are missing in a group because they wait in another',
  'rank-not-started': 'ranks enqueued a collective that their GPU has not begun',
  'rank-missing': 'RAS has no answer from ranks',
  'process-dead': 'RAS considers a process dead',
  'async-error': 'RAS reports an error of ranks',
  'rank-status': 'RAS says that ranks are in another state of their communicator than the others',
  'nvlink-errors': 'NVLink counts errors',
  'port-down': 'a port of a NIC is down among others that are active',
  'port-slow': 'a port of a NIC is slower than the others',
  'host-slow': 'a host is slow in all its pairs in a sweep of nccl-tests',
  'pair-slow': 'a pair of hosts is slow in a sweep of nccl-tests',
  'topology-…': 'findings of `tccl topo doctor`, with its codes',
  'bandwidth-low': 'the bandwidth of nccl-tests is below half (warning) or a fifth (error) of the result of the ring search',
  'result-wrong': 'nccl-tests counted wrong elements',
  'p2p-disabled': 'NCCL_P2P_DISABLE=1 or NCCL_P2P_LEVEL=LOC',
  'shm-disabled': 'NCCL_SHM_DISABLE=1',
  'ib-disabled': 'NCCL_IB_DISABLE=1 on several hosts',
  'net-socket': 'NCCL_NET=Socket on several hosts',
  'gdr-disabled': 'NCCL_NET_GDR_LEVEL=LOC or NCCL_IB_CUDA_SUPPORT=0',
  'nvls-disabled': 'NCCL_NVLS_ENABLE=0',
  'cumem-disabled': 'NCCL_CUMEM_ENABLE=0',
  'p2p-check-ignored': 'NCCL_IGNORE_DISABLED_P2P=1',
  'channels-limited': 'NCCL_MAX_NCHANNELS of 4 or less',
  'protocol-forced': 'NCCL_PROTO',
  'algorithm-forced': 'NCCL_ALGO',
  'nccl-warning': 'a warning that no rule knows, with the lines around it',
  'calls-failed': 'calls returned an error',
  'plan-differs': 'with `--topology`: decisions that differ from the plan',
  'log-cut': 'incomplete lines',
  'log-unfinished': 'the log ends in the middle of a line',
  'log-too-large': 'the log exceeds limits of the reader',
};

/** `2.14.3 to 2.22.3`, `from 2.14.3`, `to 2.22.3`. */
function range({ since, until }) {
  if (since !== undefined && until !== undefined) return `${since} to ${until}`;
  return since !== undefined ? `from ${since}` : until !== undefined ? `to ${until}` : '';
}

const rows = new Map();
for (const rule of lineRules) {
  const { code, kind, problem, cause, source } = rule;
  const text = problem
    .replaceAll(/\[[^\]]*\$\d[^\]]*\]/g, '')
    .replaceAll(/ ?[:(]? ?\$\d(?:\$\d)?\)?/g, ' …')
    .replaceAll(/(?: …)+/g, ' …')
    .trim();
  const known = rows.get(code);
  if (known === undefined) rows.set(code, { kind, text, cause, source, versions: versionsOf(rule) });
  else known.source ??= source;
}

console.log(`# Findings of tccl log

Codes are stable; \`--json\` has them. The page is made by \`node scripts/log-findings.mjs\` from the rules in \`src/planner/log/rules/\`.

A finding's *kind* is its role in the incident, from the likeliest root cause down: a \`fault\` is a broken part or a wrong setting, a \`failure\`
is a failed call, a \`symptom\` follows from something else, a \`cost\` works but is slow, a \`risk\` counts only if the job did not complete
init, an \`outcome\` is the end of the job, a \`note\` is information.

## From lines

*NCCL*: the versions whose source has the text (of the first rule, if several have one code); empty if all have it, or if another program
writes it.

| code | kind | what is wrong | usual cause | NCCL | thread |
|---|---|---|---|---|---|`);
for (const [code, { kind, text, cause, source, versions }] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1))) {
  console.log(
    `| \`${code}\` | ${kind} | ${text.replaceAll('|', '\\|')} | ${cause.replaceAll('|', '\\|')} | ${range(versions)} | ${source ?? ''} |`,
  );
}
console.log('\n## From the rebuilt job, the machine and the settings\n\n| code | what is wrong |\n|---|---|');
for (const [code, text] of Object.entries(ofJob)) console.log(`| \`${code}\` | ${text} |`);
