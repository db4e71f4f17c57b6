import { describe, expect, it } from 'vitest';
import { readResults } from '../../../../src/planner/expect/results.js';

/** Tables as [collective, ranks, [[bytes, type, µs rounded], …]]. */
function read(text: string, collective?: string) {
  return readResults(text, collective).map(({ collective: name, nRanks, rows }) => [
    name,
    nRanks,
    rows.map(({ bytes, type, timeUs }) => [bytes, type, Math.round(timeUs)]),
  ]);
}

describe("PARAM's comms.py", () => {
  const heading =
    '\tCOMMS-RES                          total-size (B)  nElementsPerRank      Time(us):p50         p75         p95         Min         Max    AlgBW(GB/s) BusBW(GB/s)  TotalTime(us):p50';
  const gather =
    '\tCOMMS-RES-all_gather-float32         268435456           8388608            1234.5      1236.0      1240.1      1230.2      1241.0        217.445     190.265                 0.0';

  it('the median time is read, whatever columns stand behind the bandwidths', () => {
    const reduce =
      '\tCOMMS-RES-all_reduce-bfloat16\t 2147483648\t 1073741824\t 50000.1\t 50100.2\t 50200.3\t 49000.0\t 50300.4\t 42.950\t 80.531';
    expect(read(`${heading}\n${reduce}                 0.0`)).toEqual([['AllReduce', undefined, [[2 ** 31, 'bfloat16', 50000]]]]);
    expect(read(reduce)).toEqual([['AllReduce', undefined, [[2 ** 31, 'bfloat16', 50000]]]]);
  });

  it('elements of a rank give the number of ranks, where its buffer has the parts of all', () => {
    expect(read(`${heading}\n${gather}`)).toEqual([['AllGather', 8, [[2 ** 28, 'float32', 1235]]]]);
    expect(() => read(gather.replace('8388608 ', '67108864'))).toThrow(/size of all_gather is of one rank's part/);
  });

  it('the size of the group is read, and rows that people cut', () => {
    const group = '[Rank   0] allSizes: [1073741824] element_size: 4 local_rank: 0, num_pg 1, groupSize 16';
    const cut = '0: \tCOMMS-RES-all_reduce-float32        1073741824         41.187      77.226';
    expect(read(`${group}\n${cut}`)).toEqual([['AllReduce', 16, [[2 ** 30, 'float32', 26070]]]]);
  });

  it('what is no collective, and a replay without sizes, is refused', () => {
    expect(() => read(gather.replace('all_gather', 'incast'))).toThrow(/incast is no collective that is simulated/);
    const replay =
      ' INFO:root:==================== Performance of replayed comms ====================\n Replayed 12 all_reduce (80.00%): ';
    expect(() => read(replay)).toThrow(/times of each collective over all its sizes.*replayedCommsPerf/);
  });
});

describe("calls that PARAM's replay writes", () => {
  const call = (fields: object) => ({ in_msg_size: 1024, out_msg_size: 1024, dtype: 'Float', world_size: 8, ...fields });

  it('calls of a kind, size and group are a row with the median time', () => {
    const calls = [
      ...[900, 300, 500].map((latency) => call({ comms: 'all_reduce', latency_us: latency })),
      call({ comms: 'all_gather_base', dtype: 'BFloat16', out_msg_size: 8192, latency_us: 410.4 }),
      call({ comms: 'all_reduce', world_size: 4, latency_us: 250 }),
      call({ comms: 'wait', latency_us: 3 }),
      { compute: 'gemm', latency_us: 7 },
    ];
    expect(read(JSON.stringify(calls))).toEqual([
      ['AllReduce', 8, [[4096, 'float32', 500]]],
      ['AllGather', 8, [[16384, 'bfloat16', 410]]],
      ['AllReduce', 4, [[4096, 'float32', 250]]],
    ]);
    expect(read(JSON.stringify(calls), 'all_gather')).toHaveLength(1);
  });

  it('a list without such calls is refused', () => {
    expect(() => read('[{ "comms": "barrier", "latency_us": 3 }]')).toThrow(/PARAM has replayed them/);
    expect(() => read('[{ "comms": "all_reduce", ')).toThrow();
  });
});

describe('ds_bench of DeepSpeed', () => {
  const head = (name: string) => `
---- Performance of ${name} on 8 devices ---------------------------------------------------------
Size (Bytes)         Description               Duration             Throughput (Gbps)    BusBW (Gbps)
----------------------------------------------------------------------------------------------------`;

  it('sizes come from the elements, and those of an all-gather are of all ranks', () => {
    const text = `${head('all_gather')}
32.0 MB              8388608x4                 1.500 ms             1431.656             1252.699
${head('all_reduce')}
256.0 MB             134217728x2               950.125 us           4520.400             3955.350
${head('pt2pt')}
1.0 GB               536870912x2               25.000 ms            343.597              343.597`;
    expect(read(text)).toEqual([
      ['AllGather', 8, [[2 ** 28, 'float32', 1500]]],
      ['AllReduce', 8, [[2 ** 28, 'float16', 950]]],
    ]);
  });

  it('sizes and durations without units are read', () => {
    const raw = `${head('all_to_all')}\n268435456            67108864x4                1234.500             1739.558             1522.113`;
    expect(read(raw)).toEqual([['AllToAll', 8, [[2 ** 28, 'float32', 1235]]]]);
  });
});

describe('nccl_perf.txt', () => {
  const heading = 'framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency';

  it('sizes are elements and times milliseconds; each number of ranks is a table', () => {
    const rows = [2, 8].map((n) => `TRTLLM,2.27.3,NVIDIA H100 80GB HBM3,all_gather,NCCL,half,${n},134217728,0.${n}5`);
    const tables = readResults([heading, ...rows, ''].join('\n'));
    expect(tables.map(({ nRanks, rows: [row] }) => [nRanks, row?.bytes, row?.timeUs])).toEqual([
      [2, 2 ** 28, 250],
      [8, 2 ** 28, 850],
    ]);
    expect(tables[0]?.run).toMatchObject({ nccl: '2.27.3', gpus: ['NVIDIA H100 80GB HBM3'] });
    expect(() => readResults(`${heading}\nTRTLLM,2.27.3,all_gather`)).toThrow(/row has 3 values, the heading 9/);
  });
});

describe('all_reduce_bench.py', () => {
  it('payloads with their bandwidths are read, but for those that two digits say too little about', () => {
    const text = `
Environment:
- software: torch=2.9.1+cu130, cuda=13.0, nccl=(2, 27, 7)
- hardware: _CudaDeviceProperties(name='NVIDIA H200', major=9, minor=0, total_memory=143156MB, multi_processor_count=132)

The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):

| payload |    busbw   |    algbw   |
| ------: | ---------: | ---------: |
|   32KiB |   0.02GBps |   0.01GBps |
|   16GiB | 482.26GBps | 275.58GBps |`;
    const [table] = readResults(text);
    expect(table).toMatchObject({ collective: 'AllReduce', nRanks: 8, run: { nccl: '2.27.7', gpus: ['NVIDIA H200'] } });
    expect(table?.rows).toMatchObject([{ bytes: 2 ** 34, timeUs: expect.closeTo(62340, -1) as number }]);
  });

  it('the one payload of older versions is read', () => {
    const text =
      'The average bandwidth of all_reduce with a 4.0GB payload (5 trials, 4 ranks):\n algbw: 87.100 GBps (696.8 Gbps)\n busbw: 130.650 GBps (1045.2 Gbps)';
    expect(read(text)).toEqual([['AllReduce', 4, [[4e9, 'float32', 45924]]]]);
  });
});
