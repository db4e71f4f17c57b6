import type { LineRule } from './rule.js';

/** PyTorch and what is built on it. The watchdog's own numbers are compared between ranks in checks/watchdog.ts. */
export const pytorchRules: readonly LineRule[] = [
  {
    code: 'watchdog-timeout', kind: 'symptom', needles: ['watchdog caught collective operation timeout', 'collective operation timeout'], explains: ['exit-signal', 'exit-child', 'store-lost', 'remote-closed', 'init-unfinished'],
    problem: 'PyTorch\'s watchdog gave up on a collective that did not end', cause: 'a rank did not call it (other code path, a crash, slow data or checkpoint), ranks call in different order, or the network stands still',
    remedy: 'find the rank that is behind: TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1, then tccl diagnose on the dumps; py-spy dump of that rank',
  },
  {
    code: 'watchdog-stuck', kind: 'failure', needles: ['watchdog got stuck', 'heartbeatmonitor', 'heartbeat monitor timed out'], pattern: /watchdog got stuck|HeartbeatMonitor[^\n]{0,80}(?:timed out|stuck)|heartbeat monitor timed out/i, explains: ['exit-signal', 'exit-child', 'remote-closed'],
    problem: 'PyTorch\'s NCCL watchdog itself stands still', cause: 'a CUDA call or the Python GIL blocks it: a hung driver, a deadlock in the program', remedy: 'py-spy dump --native of that process; dmesg -T | grep -i xid; TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC raises the limit',
  },
  {
    code: 'calls-differ', kind: 'fault', needles: ['detected mismatch between collectives'], pattern: /Detected mismatch between collectives on ranks\. (.{10,300})/, explains: ['watchdog-timeout', 'remote-closed', 'exit-child'],
    problem: 'ranks call different collectives: $1', cause: 'code paths differ between ranks (a condition on the rank, uneven data)', remedy: 'look at the stacks of both ranks at that call',
  },
  {
    code: 'store-timeout', kind: 'failure', needles: ['timed out initializing process group in store based barrier', 'clients joined', 'rendezvoustimeouterror', 'client socket has timed out', 'client socket has failed to connect', 'rendezvousconnectionerror', 'timeout waiting for key', 'got error: socket timeout'],
    pattern: /(Timed out initializing process group[^\n]{0,200}|\d{1,6}\/\d{1,6} clients joined|RendezvousTimeoutError|client socket has (?:timed out|failed)[^\n]{0,120}|RendezvousConnectionError|[Tt]imeout waiting for key: ?\S{1,60}|store->get\([^)]{0,40}\) got error: [^\n]{0,40}[Tt]imeout)/, explains: ['exit-child', 'init-unfinished', 'exit-signal'],
    problem: 'ranks did not find each other through PyTorch\'s store: $1', cause: 'some ranks did not start or died before, or cannot reach MASTER_ADDR:MASTER_PORT (firewall, wrong address)', remedy: 'nc -vz $MASTER_ADDR $MASTER_PORT from every host; compare WORLD_SIZE with the ranks that started',
  },
  {
    code: 'store-lost', kind: 'risk', needles: ['tcpstore', 'store->get', 'recvvalue failed', 'failed to recv, got 0 bytes', 'sendbytes failed'], pattern: /(?:TCPStore|store->get|recvValue|sendBytes)[^\n]{0,160}(?:failed|error|reset|Broken pipe|Socket Timeout|closed)|got 0 bytes/i, except: /WorkNCCL/,
    problem: 'the connection to PyTorch\'s store on rank 0 was lost', cause: 'rank 0\'s process ended first', remedy: 'look at the log of rank 0\'s host',
  },
  {
    code: 'dump-signal', kind: 'note', needles: ['received a dump signal', 'flight recorder dump signal'], pattern: /dump signal[^\n]{0,80}(?:from )?rank (\d{1,7})/i,
    problem: 'rank $1 noticed the timeout first and asked the others for their flight recordings', cause: 'its watchdog came first', remedy: 'give the dumps to tccl diagnose',
  },
  {
    code: 'barrier-device', kind: 'note', needles: ['devices used by this process are currently unknown', 'using gpu 0 to perform barrier'],
    problem: 'a barrier was called before its GPU was chosen; all ranks may take GPU 0', cause: 'init_process_group has no device_id', remedy: 'torch.cuda.set_device(local_rank), init_process_group(device_id=...)',
  },
  {
    code: 'nccl-unhandled-cuda', kind: 'symptom', needles: ['ncclunhandledcudaerror', 'unhandled cuda error'],
    problem: 'NCCL gave back ncclUnhandledCudaError', cause: 'a CUDA call failed; the line with NCCL WARN before it says which', remedy: 'NCCL_DEBUG=WARN, and look at the first CUDA error of that rank',
  },
  {
    code: 'nccl-unhandled-system', kind: 'symptom', needles: ['ncclsystemerror', 'unhandled system error'],
    problem: 'NCCL gave back ncclSystemError', cause: 'a system call failed: network, shared memory or a limit; the line with NCCL WARN before it says which', remedy: 'NCCL_DEBUG=WARN',
  },
  {
    code: 'nccl-invalid', kind: 'symptom', needles: ['ncclinvalidusage', 'ncclinvalidargument', 'ncclinternalerror'], pattern: /(ncclInvalidUsage|ncclInvalidArgument|ncclInternalError)/,
    problem: 'NCCL gave back $1', cause: 'the line with NCCL WARN before it says why', remedy: 'NCCL_DEBUG=WARN',
  },
  {
    code: 'remote-closed', kind: 'symptom', needles: ['ncclremoteerror', 'remote process exited or there was a network error'],
    problem: 'NCCL gave back ncclRemoteError', cause: 'another rank ended, or the network broke', remedy: 'find the rank whose log ends first or has another error before this',
  },
];
