import { byVersion, type Rule, since } from './rule.js';

/**
 * Decisions about calls on registered windows that changed between versions. No recorded answers exist for them, so all of them
 * are read from source.
 */
export const symmetricRules = {
  symmetricKernels: unrecorded(
    byVersion(
      {
        about: 'Kernels for buffers in symmetric windows (sum of floats up to 32 bits, AllGather of any type).',
        source: 'src/symmetric.cc; since 2.28.3 src/sym_kernels.cc, kernelName',
        undo: 'NCCL_WIN_ENABLE=0',
      },
      {
        '2.18.1': ['none', 'There are none.'],
        '2.27.3': ['one domain', 'Eleven for GPUs that load from and store to each other: LL, plain and multicast.'],
        '2.29.2': ['ring of rails', 'Also AllGather between nodes, AllGather_GinHier_MCRing.'],
        '2.29.7': [
          'rails',
          'Also between nodes AllGather_RailRing_LsaSTMC in its place, ReduceScatter_RailA2A_LsaLD and ReduceScatter_RailA2A_LsaLDMC (NCCL_SYM_GIN_KERNELS_ENABLE=0 switches them off).',
        ],
        '2.30.3': ['tma', 'Also four that copy by the tensor memory accelerator of Blackwell (TMA), if asked for.'],
      },
    ),
  ),
  symmetricScope: unrecorded(
    byVersion(
      {
        about: 'Communicators with symmetric kernels.',
        source: 'src/init.cc, symmetricSupport; src/sym_kernels.cc, ncclSymkAvailable',
      },
      {
        '2.18.1': ['direct p2p', 'One node whose GPUs copy to each other peer-to-peer.'],
        '2.28.7': ['p2p', 'One node whose GPUs can do so at any distance.'],
        '2.29.2': ['nvlink', 'GPUs that are all joined by NVLink directly; several nodes whose NICs GPUs can drive (GIN).'],
      },
    ),
  ),
  symmetricAlone: unrecorded(
    byVersion(
      {
        about: 'Symmetric kernels in groups of calls.',
        source: 'src/enqueue.cc, ncclPrepareTasks; src/scheduler/symmetric_sched.cc',
      },
      {
        '2.18.1': [true, 'Only for one collective alone in its group.'],
        '2.28.3': [false, 'For several, with kernels other than LL.'],
      },
    ),
  ),
  symmetricCells: unrecorded(
    since('2.28.3', {
      about: 'Size of a call in the model of symmetric kernels.',
      before: 'As it is.',
      now: 'Rounded up to 1 KiB.',
      source: 'src/scheduler/symmetric_sched.cc, NCCL_SYM_KERNEL_CELL_SIZE',
    }),
  ),
  symmetricParts: unrecorded(
    since('2.29.2', {
      about: 'Calls with one of both buffers in a symmetric window, or none.',
      before: 'They use no symmetric kernel.',
      now: 'AllGather needs a window for its result only, ReduceScatter for its input only; other calls use LL kernels, without any window only with NCCL_SYM_NOWIN_ENABLE=1.',
      source: 'src/sym_kernels.cc, ncclSymkPickKernel',
    }),
  ),
  symmetricLl: unrecorded(
    byVersion(
      {
        about: 'Symmetric LL kernels where the general model takes another protocol than LL.',
        source: 'src/scheduler/symmetric_sched.cc, ncclMakeSymmetricTaskList',
        undo: 'NCCL_SYM_KERNEL',
      },
      {
        '2.18.1': ['always', 'They are used.'],
        '2.29.2': ['with general ll', 'They are not used: the general kernel is.'],
        '2.29.7': ['both or general ll', 'They are used with windows for both buffers; with fewer the general kernel is.'],
      },
    ),
  ),
  symmetricMulticastRanks: unrecorded(
    byVersion(
      { about: 'Fewest GPUs of a symmetric kernel that multicasts.', source: 'src/sym_kernels.cc, hasLsaMultimem' },
      { '2.18.1': [2, '2'], '2.29.7': [3, '3'] },
    ),
  ),
  symmetricAverages: unrecorded(
    since('2.30.3', {
      about: 'Symmetric kernels for averages.',
      before: 'They are not used.',
      now: 'They are used as for sums.',
      source: 'src/scheduler/symmetric_sched.cc, symkRedOp',
    }),
  ),
  symmetricTma: unrecorded(
    byVersion(
      {
        about: 'Symmetric kernels that copy by TMA.',
        source: 'src/sym_kernels.cc, NCCL_SYM_TMA_ENABLE',
        undo: 'NCCL_SYM_TMA_ENABLE=0',
      },
      {
        '2.18.1': [
          'if asked',
          'With NCCL_SYM_TMA_ENABLE=1 on Blackwell, with the model of the plain kernels, over which they win ties.',
        ],
        '2.31.2': ['own model', 'On Blackwell, where a call is large enough for their loops; they have a model of their own.'],
      },
    ),
  ),
  symmetricModel: unrecorded(
    byVersion(
      {
        about: 'Model of time of symmetric kernels within one NVLink domain.',
        source: 'src/symmetric.cc, queryModel; since 2.31 src/tuning/sym_model.cc, queryModel_lsa',
      },
      {
        '2.18.1': ['first', 'Any number of CTAs; on Blackwell 11 us for LL of ReduceScatter, up to 644 GB/s.'],
        '2.31.2': [
          'even',
          'One CTA or an even number; on Blackwell 10.5 us for LL of ReduceScatter, whose other kernels reach 698 GB/s.',
        ],
      },
    ),
  ),
  symmetricRails: unrecorded(
    byVersion(
      {
        about:
          'Model of symmetric kernels between nodes: GB/s that one CTA of ReduceScatter moves (plain and multicast, Hopper, then Blackwell).',
        source: 'src/sym_kernels.cc, getSmBw_ReduceScatter_RailA2A; since 2.31 src/tuning/sym_model.cc',
      },
      {
        '2.18.1': [
          { hopper: [14.5, 9.85], blackwell: [5, 2.25], chunkBytes: 65536 },
          '14.5 and 9.85, 5 and 2.25; chunks of 64 KiB.',
        ],
        '2.30.7': [
          { hopper: [13.7, 4.22], blackwell: [26.6, 8.44], chunkBytes: 131072 },
          '13.7 and 4.22, 26.6 and 8.44; chunks of 128 KiB, or NCCL_SYM_RS_GIN_CHUNK_SIZE.',
        ],
      },
    ),
  ),
  copyEngines: unrecorded(
    byVersion(
      {
        about: 'AllGather, AllToAll, Gather and Scatter by copy engines in place of kernels, with symmetric windows.',
        source: 'src/ce_coll.cc, ncclCeAvailable; src/enqueue.cc, taskAppend',
        undo: 'NCCL_SYM_CE_THRESHOLD',
      },
      {
        '2.18.1': ['never', 'There are none.'],
        '2.28.3': ['policy', 'On one node with windows for both buffers and NCCL_CTA_POLICY=2 (ZERO).'],
        '2.29.2': [
          'large gathers',
          'A window for the result is enough; and without that policy AllGather on Blackwell from 8 Mi elements a rank on (NCCL_SYM_CE_THRESHOLD).',
        ],
        '2.30.7': ['between nodes', 'With that policy AllGather and AllToAll between nodes, too, with windows for both buffers.'],
        '2.31.2': [
          'later',
          'The same, but without that policy from 32 Mi elements on where GPUs copy by TMA and do not multicast.',
        ],
      },
    ),
  ),
} as const;

/** Marks a rule for whose behaviour no recorded answers exist, whatever the release. */
function unrecorded<Value>(rule: Rule<Value>): Rule<Value> {
  return { ...rule, isRecorded: false };
}
