import type { Network } from '../simulate/environment.js';

/** Measurements that would tell a fault from an error of the prediction. */
export function wouldTell(nHosts: number, network: Network): string[] {
  const alone = nHosts === 1;
  return [
    `the same table from ${alone ? 'another machine' : 'other hosts'} of this kind: if ${alone ? 'it takes' : 'they take'} as long, ${alone ? 'this one has' : 'these have'} no fault of ${alone ? 'its' : 'their'} own`,
    ...(alone
      ? []
      : [
          `the network alone between two of the hosts, against its line rate (${network === 'efa' ? 'fi_rma_bw' : network === 'verbs' ? 'ib_write_bw' : 'iperf3'}), and one host alone against tccl expect`,
        ]),
  ];
}
