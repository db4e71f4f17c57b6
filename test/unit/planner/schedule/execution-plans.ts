/** Execution plans in MSCCL++'s JSON form, made for any number of ranks. */

type Json = Record<string, unknown>;

const place = (type: string, index: number, size = 1): Json => ({ type, index, size });
const far = (id: number, index: number, size = 1): Json => ({ buffer_id: id, index, size });

function planOf(collective: string, inplace: boolean, protocol: string, gpus: Json[], more: Json = {}): string {
  return JSON.stringify({ name: `own ${collective}`, collective, protocol, inplace, gpus, ...more });
}

const othersOf = (rank: number, n: number) => Array.from({ length: n - 1 }, (_, k) => (rank + 1 + k) % n);

/** Each block reads its chunk from all others, adds, and writes the sum to all; `groups` blocks share each chunk. */
export function readReduceSend(n: number, groups = 1): string {
  const gpus = Array.from({ length: n }, (_, rank) => {
    const others = othersOf(rank, n);
    const signal = { name: 'signal', channel_type: 'memory', channel_ids: others.map((_peer, k) => k) };
    return {
      id: rank,
      input_chunks: n,
      output_chunks: n,
      scratch_chunks: 0,
      channels: [{ channel_type: 'memory', connected_to: Array.from({ length: groups }, () => others).flat() }],
      remote_buffers: others.map((peer) => ({ rank: peer, type: 'i', access_channel_types: ['memory'] })),
      semaphores: [],
      threadblocks: Array.from({ length: groups }, (_unused, group) => ({
        id: group,
        channels: [{ channel_type: 'memory', channel_ids: others.map((_peer, k) => group * others.length + k) }],
        remote_buffer_refs: [{ access_channel_type: 'memory', remote_buffer_ids: others.map((_peer, k) => k) }],
        ops: [
          signal,
          { ...signal, name: 'wait' },
          {
            name: 'rres',
            channel_type: 'memory',
            reduce_op: 'sum',
            src_buff: [place('i', rank), ...others.map((_peer, k) => far(k, rank))],
            dst_buff: [place('i', rank), ...others.map((_peer, k) => far(k, rank))],
            ...(groups === 1 ? {} : { tbg_info: { tb_id: group, tbg_size: groups } }),
          },
          { name: 'nop' },
          signal,
          { ...signal, name: 'wait' },
        ],
      })),
    };
  });
  return planOf('allreduce', true, 'Simple', gpus);
}

/** Every rank puts packets into the scratch of all others, which add what came. */
export function packets(n: number): string {
  const gpus = Array.from({ length: n }, (_, rank) => {
    const others = othersOf(rank, n);
    return {
      id: rank,
      input_chunks: 1,
      output_chunks: 1,
      scratch_chunks: n,
      channels: [{ channel_type: 'memory', connected_to: others }],
      remote_buffers: others.map((peer) => ({ rank: peer, type: 's', access_channel_types: ['memory'] })),
      threadblocks: [
        {
          id: 0,
          channels: [{ channel_type: 'memory', channel_ids: others.map((_peer, k) => k) }],
          remote_buffer_refs: [{ access_channel_type: 'memory', remote_buffer_ids: others.map((_peer, k) => k) }],
          ops: [
            { name: 'ppkt', channel_type: 'memory', src_buff: [place('i', 0)], dst_buff: others.map((_peer, k) => far(k, rank)) },
            { name: 'repkt', src_buff: [place('i', 0), ...others.map((peer) => place('s', peer))], dst_buff: [place('i', 0)] },
          ],
        },
      ],
    };
  });
  return planOf('allreduce', true, 'LL', gpus);
}

/** Not in place: puts to all others through port channels; a second block signals behind a barrier. */
export function putAndSignal(n: number): string {
  const gpus = Array.from({ length: n }, (_, rank) => {
    const others = othersOf(rank, n);
    const ids = others.map((_peer, k) => k);
    return {
      id: rank,
      input_chunks: 1,
      output_chunks: n,
      scratch_chunks: 0,
      channels: [{ channel_type: 'port', connected_to: others }],
      remote_buffers: others.map((peer) => ({ rank: peer, type: 'o', access_channel_types: ['port'] })),
      threadblocks: [
        {
          id: 0,
          channels: [{ channel_type: 'port', channel_ids: ids }],
          remote_buffer_refs: [{ access_channel_type: 'port', remote_buffer_ids: ids }],
          ops: [
            {
              name: 'put',
              channel_type: 'port',
              channel_ids: ids,
              src_buff: ids.map(() => place('i', 0)),
              dst_buff: ids.map((k) => far(k, rank)),
            },
            { name: 'copy', src_buff: [place('i', 0)], dst_buff: [place('o', rank)] },
            { name: 'barrier', barrier_id: 0, num_threadblocks: 2 },
          ],
        },
        {
          id: 1,
          channels: [{ channel_type: 'port', channel_ids: ids }],
          ops: [
            { name: 'barrier', barrier_id: 0, num_threadblocks: 2 },
            { name: 'signal', channel_type: 'port', channel_ids: ids },
            { name: 'flush', channel_type: 'port', channel_ids: ids },
            { name: 'wait', channel_type: 'port', channel_ids: ids },
          ],
        },
      ],
    };
  });
  return planOf('allgather', false, 'Simple', gpus);
}

/** Through the NVSwitch, piece after piece, with scratch that holds `held` pieces and semaphores between three blocks. */
export function switchPipeline(n: number, held: number): string {
  const unit = 2 ** 26 / n / held;
  const loop = (ops: Json[]): Json => ({ name: 'pipeline', iter_context: { unit_size: unit, num_chunks: 1 }, ops });
  const all = Array.from({ length: n }, (_, chunk) => chunk);
  const gpus = Array.from({ length: n }, (_, rank) => {
    const others = othersOf(rank, n);
    const ids = others.map((_peer, k) => k);
    const meet = [
      { name: 'signal', channel_type: 'memory', channel_ids: ids },
      { name: 'wait', channel_type: 'memory', channel_ids: ids },
    ];
    const sem = (name: string, id: number): Json => ({ name: `sem_${name}`, semaphore_ids: [id] });
    const refs = (from: number) => [{ channel_type: 'memory', channel_ids: ids.map((k) => from + k) }];
    return {
      id: rank,
      input_chunks: n,
      output_chunks: 0,
      scratch_chunks: n,
      channels: [
        { channel_type: 'switch', buffer_type: 's', rank_groups: [{ size: n, ranks: all }] },
        { channel_type: 'memory', connected_to: [...others, ...others] },
      ],
      remote_buffers: [],
      semaphores: [{ init_value: 0 }, { init_value: 0 }, { init_value: held }],
      threadblocks: [
        {
          id: 0,
          channels: refs(0),
          ops: [
            loop([
              sem('acquire', 2),
              ...all.map((chunk) => ({ name: 'copy', src_buff: [place('i', chunk)], dst_buff: [place('s', chunk)] })),
              ...meet,
              sem('release', 0),
            ]),
          ],
        },
        {
          id: 1,
          channels: [{ channel_type: 'switch', channel_ids: [0] }],
          ops: [
            loop([
              sem('acquire', 0),
              {
                name: 'glres',
                channel_type: 'switch',
                src_buff: [{ switch_channel_id: 0, index: rank, size: 1 }],
                dst_buff: [{ switch_channel_id: 0, index: rank, size: 1 }],
              },
              sem('release', 1),
            ]),
          ],
        },
        {
          id: 2,
          channels: refs(ids.length),
          ops: [
            loop([
              sem('acquire', 1),
              ...meet,
              ...all.map((chunk) => ({ name: 'copy', src_buff: [place('s', chunk)], dst_buff: [place('i', chunk)] })),
              sem('release', 2),
            ]),
          ],
        },
      ],
    };
  });
  return planOf('allreduce', true, 'Simple', gpus, { reuse_resources: true });
}
