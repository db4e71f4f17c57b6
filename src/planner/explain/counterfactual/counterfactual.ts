/** A change of the cluster that a question supposes: `what if one NIC is down`. */
export type Counterfactual =
  | { readonly kind: 'variable'; readonly name: string; readonly value: string | null }
  /** NICs of one host that are down. */
  | { readonly kind: 'nics-down'; readonly count: number }
  /** One NIC of one host, by its number. */
  | { readonly kind: 'nic-down'; readonly nic: number }
  /** NICs of each host that are used. */
  | { readonly kind: 'nics'; readonly count: number }
  | { readonly kind: 'nics-doubled' }
  | ({ readonly kind: 'nic-speed'; readonly mbps: number } & OfOneNic)
  | { readonly kind: 'without'; readonly what: 'nvlink' | 'gdr' | 'nics' }
  | { readonly kind: 'nvlinks-halved' }
  /** NVLinks of one GPU of one host that are down. */
  | { readonly kind: 'nvlinks-down'; readonly count: number; readonly gpu: number }
  /** NVLinks between each two GPUs. */
  | { readonly kind: 'nvlinks'; readonly count: number }
  | { readonly kind: 'sockets' }
  | ({ readonly kind: 'pcie'; readonly generation: 3 | 4 | 5 } & OfOneNic)
  | ({ readonly kind: 'pcie-lanes'; readonly lanes: 4 | 8 } & OfOneNic)
  | { readonly kind: 'nodes'; readonly count: number }
  /** GPUs of each host. */
  | { readonly kind: 'gpus'; readonly count: number }
  /** These GPUs of each host, by their numbers. */
  | { readonly kind: 'gpu-list'; readonly gpus: readonly number[] }
  /** All GPUs of each host but these. */
  | { readonly kind: 'gpus-out'; readonly gpus: readonly number[] }
  /** GPUs of all hosts together. */
  | { readonly kind: 'ranks'; readonly count: number }
  /** GPUs of another model, by its id or the beginning of several (`h100`), in the machine that usually has them. */
  | { readonly kind: 'gpu-model'; readonly model: string; readonly count?: number }
  | { readonly kind: 'version'; readonly nccl: string }
  | { readonly kind: 'oversubscription'; readonly ratio: number }
  | { readonly kind: 'machine'; readonly name: string }
  | { readonly kind: 'graph-launch' };

/** Set for a change of one NIC of one host; else it is one of all. */
interface OfOneNic {
  readonly isOneNic?: true;
}
