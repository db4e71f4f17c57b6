import type { Network } from '../simulate/environment.js';

/** Programs that measure the bandwidth between two hosts. */
const bandwidthTools: Readonly<Record<Network, string>> = {
  verbs: 'ib_write_bw',
  infiniband: 'ib_write_bw',
  roce: 'ib_write_bw',
  efa: 'fi_rma_bw',
  'efa-v1': 'fi_rma_bw',
  slingshot: 'fi_rma_bw',
  sockets: 'iperf3',
  tcpx: 'iperf3',
};

/** Measurements that would tell a fault from an error of the prediction. */
export function wouldTell(nHosts: number, network: Network): string[] {
  const alone = nHosts === 1;
  return [
    `the same table from ${alone ? 'another machine' : 'other hosts'} of this kind: if ${alone ? 'it takes' : 'they take'} as long, ${alone ? 'this one has' : 'these have'} no fault of ${alone ? 'its' : 'their'} own`,
    ...(alone
      ? []
      : [
          `the network alone between two of the hosts, against its line rate (${bandwidthTools[network]}), and one host alone against tccl expect`,
        ]),
  ];
}
