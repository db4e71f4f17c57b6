import { describe, expect, it } from 'vitest';
import { withNicNumbers } from '../../../../src/planner/explain/nic-names.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';

const [h100, p5] = [[machine('dgx-h100')], [machine('aws-p5')]] as const;

describe('names of network devices in questions', () => {
  it.each([
    ['is mlx5_3 idle?', 'is NIC 3 idle?'],
    ['MLX5_3:1 and mlx5_0', 'NIC 3 and NIC 0'],
    ['what if NCCL_IB_HCA=mlx5_0,mlx5_3', 'what if NCCL_IB_HCA=mlx5_0,mlx5_3'],
    ['what if NCCL_IB_HCA is set to mlx5_3', 'what if NCCL_IB_HCA is set to mlx5_3'],
    ['/sys/class/infiniband/mlx5_3/ports', '/sys/class/infiniband/mlx5_3/ports'],
    ['all_reduce on 2 nodes over eth0', 'all_reduce on 2 nodes over eth0'],
  ])('%s', (text, read) => {
    expect(withNicNumbers(text, h100)).toBe(read);
  });

  it('refuses one that the machine lacks, if its devices have such names', () => {
    expect(() => withNicNumbers('why not mlx5_9', h100)).toThrow(
      'no network device mlx5_9: there are mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5, mlx5_6 and mlx5_7',
    );
    expect(withNicNumbers('why not mlx5_9', p5)).toBe('why not mlx5_9');
  });
});
