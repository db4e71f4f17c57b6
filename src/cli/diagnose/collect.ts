import { InvalidArgumentError } from '../../errors.js';
import { version } from '../../version.js';
import { printData } from '../output.js';

interface CollectOptions {
  readonly collect?: boolean;
  readonly hosts?: string;
  readonly json?: boolean;
}

/** `tccl diagnose --collect`. */
export function showScript(paths: readonly string[], { collect, hosts, json }: CollectOptions): void {
  if (collect !== true) throw new InvalidArgumentError('ARGUMENT_TYPE', '--hosts goes with --collect');
  if (paths.length > 0 || json === true)
    throw new InvalidArgumentError('ARGUMENT_TYPE', '--collect prints a script: it takes no files and no --json');
  printData(collectScript(hosts === undefined ? [] : hostList(hosts)));
}

/** Names go into the script as they are, so only characters of host names, addresses and users may be in them. */
function hostList(text: string): string[] {
  const hosts = [...new Set(text.split(','))];
  const wrong = hosts.find((host) => !/^[A-Za-z0-9_][\w.:%-]*(?:@[A-Za-z0-9][\w.:%-]*)?$/.test(host));
  if (wrong !== undefined)
    throw new InvalidArgumentError('ARGUMENT_TYPE', `--hosts takes names or user@name, separated by commas, not '${wrong}'`);
  return hosts;
}

/**
 * A POSIX shell script that gathers, on this host or on `hosts` by ssh, the outputs that `tccl diagnose` reads: a text file a
 * host, in which a heading names the host and the command of each output.
 */
export function collectScript(hosts: readonly string[]): string {
  return `#!/bin/sh
# Gathers outputs about ${hosts.length === 0 ? 'this host' : 'the hosts of a job'} for \`tccl diagnose\` into a folder. Read it before you run it:
#
#   sh collect.sh [FOLDER]
#
# It only reads. It needs no root; commands marked "root" show more with it. Variables are chosen by name, and
# values that look like secrets are masked. Printed by tccl ${version}.
set -u
umask 077
hosts='${hosts.join(' ')}'
folder=\${1:-tccl-collect-$(date +%Y%m%d-%H%M%S)}
ssh=\${TCCL_SSH:-ssh}

host_part() {
  cat <<'HOST_PART'
${hostPart()}HOST_PART
}

mkdir -p "$folder" || exit 1
failed=0
if [ -z "$hosts" ]; then
  host_part | sh > "$folder/$(uname -n).txt" || failed=1
else
  started=
  for host in $hosts; do
    (host_part | $ssh -o BatchMode=yes -o ConnectTimeout=15 "$host" sh > "$folder/\${host##*@}.txt") &
    started="$started $!:$host"
  done
  for each in $started; do
    wait "\${each%%:*}" || { failed=1; echo "collect: $ssh \${each#*:} failed: see the line above" >&2; }
  done
fi
echo "Put the output of the job into $folder, too; then: tccl diagnose $folder" >&2
exit $failed
`;
}

/** Beginnings of names of variables that matter to NCCL, launchers and frameworks. */
const variables = [
  ...['NCCL_', 'TORCH_', 'PYTORCH_', 'CUDA_', 'NVIDIA_', 'UCX_', 'FI_', 'OFI_', 'OMPI_', 'PMI', 'MPI', 'SLURM_', 'GLOO_', 'OMP_'],
  ...['NVSHMEM_', 'VLLM_', 'SGLANG_', 'DEEPSPEED_', 'RAY_', 'HOROVOD_', 'MASTER_', 'RANK=', 'WORLD_', 'LOCAL_', 'GROUP_RANK='],
  ...['NODE_RANK=', 'LD_LIBRARY_PATH=', 'LD_PRELOAD=', 'PATH='],
];

/** Words in names whose values are secrets. */
const secretWords = [
  'token',
  'secret',
  'passw',
  'credential',
  'cookie',
  'api[_-]?key',
  'access[_-]?key',
  'private[_-]?key',
  '[_-]auth',
];

/** Text of the host's part; it comes by standard input, so every command has another one. */
function hostPart(): string {
  const names = secretWords.map(anyCase).join('|');
  return String.raw`LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/local/cuda/bin
export LC_ALL PATH
host=$(uname -n)
limit=
command -v timeout >/dev/null 2>&1 && limit='timeout 30'

# Masks what follows the name of a secret, passwords in addresses, and tokens of well-known shapes.
mask() {
  sed -E \
    -e 's/([A-Za-z0-9_-]*(${names})[A-Za-z0-9_-]*"?[=:]+ *"?)[^ "]+/\1(masked)/g' \
    -e 's/(--[a-z-]*(${names})[a-z-]* +)[^ ]+/\1(masked)/g' \
    -e 's#(://)[^/@ ]+@#\1(masked)@#g' \
    -e 's/(^|[^A-Za-z0-9])(hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abp]-|AKIA|ASIA|eyJ|[Bb]earer +)[A-Za-z0-9_.\/+=-]{12,}/\1(masked)/g'
}

# show COMMAND [root]: a heading and what the command prints; nothing where it is not installed.
show() {
  command -v "${'${1%% *}'}" >/dev/null 2>&1 || return 0
  printf '# tccl: host %s, command %s\n' "$host" "$1"
  if [ "${'${2-}'}" = root ] && [ "$(id -u)" -ne 0 ]; then echo '# without root: this shows less'; fi
  $limit sh -c "$1" </dev/null 2>&1 | tail -n 50000 | mask
  echo
}

chosen() { grep -E '^(${variables.join('|')})' | mask; }

# GPUs and what connects them
show 'nvidia-smi'
show 'nvidia-smi -L'
show 'nvidia-smi -q'
show 'nvidia-smi topo -m'
show 'nvidia-smi topo -p2p r'
show 'nvidia-smi nvlink -s'
show 'nvidia-smi nvlink -e'
show 'lspci -vvv' root
for unit in nvidia-fabricmanager nvidia-imex; do
  systemctl cat "$unit" >/dev/null 2>&1 && show "systemctl status --no-pager $unit"
done

# Networks
show 'ip addr'
for path in /sys/class/net/*/device; do
  [ -e "$path" ] || continue
  name=${'${path%/device}'}
  show "ethtool ${'${name##*/}'}"
  show "ethtool -S ${'${name##*/}'}"
done
if [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
  show 'ibstat'
  show 'ibv_devinfo -v'
  show 'ibdev2netdev'
  show 'rdma link'
  # The table of show_gids, which comes with one vendor's drivers only.
  printf '# tccl: host %s, command show_gids\nDEV\tPORT\tINDEX\tGID\tIPv4\tVER\tDEV\n' "$host"
  for path in /sys/class/infiniband/*/ports/*/gids/*; do
    gid=$(cat "$path" 2>/dev/null) || continue
    [ "$gid" = 0000:0000:0000:0000:0000:0000:0000:0000 ] && continue
    port=${'${path%/gids/*}'}
    index=${'${path##*/}'}
    device=${'${port%/ports/*}'}
    kind=v1
    grep -q v2 "$port/gid_attrs/types/$index" 2>/dev/null && kind=v2
    address=
    case $gid in
      0000:0000:0000:0000:0000:ffff:*)
        high=${'${gid%:*}'}
        address=$(printf '%d.%d.%d.%d' $(echo "${'${high##*:}${gid##*:}'}" | sed 's/../0x& /g'))
        ;;
    esac
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${'${device##*/}'}" "${'${port##*/}'}" "$index" "$gid" "$address" "$kind" \
      "$(cat "$port/gid_attrs/ndevs/$index" 2>/dev/null)"
  done
  echo
fi

# The host, and limits of its processes
show 'lscpu'
show 'df -h'
show 'df -h /dev/shm'
show 'free'
show 'lsmod'
show 'cat /proc/cmdline'
show 'cat /proc/self/limits'
show 'pip list'
printf '# tccl: host %s, command env\n' "$host"
env | chosen
echo

# Processes on the GPUs: their variables and limits, and where they are
for pid in $(nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null | grep -E '^[0-9]+$' | sort -u | head -n 16); do
  if [ -r "/proc/$pid/environ" ]; then
    printf '# tccl: host %s, command env of %s\n' "$host" "$pid"
    tr '\0' '\n' < "/proc/$pid/environ" | chosen
    echo
  fi
  show "cat /proc/$pid/limits" root
  show "py-spy dump --pid $pid" root
done
show 'ncclras -v 2>/dev/null'

# The kernel: Xid, out of memory, links. Lines may be days old.
if dmesg >/dev/null 2>&1; then show 'dmesg -T'; else show 'journalctl -k --no-pager -n 20000' root; fi
exit 0
`;
}

/** \`token\` as \`[tT][oO]…\`: not every sed ignores case. */
function anyCase(word: string): string {
  return word.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}
