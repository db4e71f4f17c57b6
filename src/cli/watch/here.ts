import { hostname, networkInterfaces, userInfo } from 'node:os';
import { join } from 'node:path';
import { compareVersions } from '../../planner/versions/version.js';
import { linkOf, processIds, textOf } from '../../runtime/proc.js';

/** The release of NCCL that has RAS. */
const RAS_SINCE = '2.24';

/** True if the address or name is this host's. */
export function isHere(host: string): boolean {
  if (host === 'localhost' || host === '::1' || host === hostname() || /^127\./.test(host)) return true;
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === host) === true);
}

/**
 * Reason why RAS does not answer on this host, and the way to it, by the processes of this user that have loaded NCCL; undefined
 * if they show none. A program that has NCCL linked into it is not found.
 *
 * @param port that was asked
 * @param proc the file system of processes, as Linux has it
 */
export function reasonHere(port: number, proc = '/proc'): string | undefined {
  const own = linkOf(join(proc, 'self/ns/net'));
  for (const pid of processIds(proc).map(String)) {
    const library = /\/libnccl\.so(?:\.(\d+\.\d+\.\d+))?/.exec(textOf(join(proc, pid, 'maps')));
    if (library === null) continue;
    const [, version] = library;
    const name = `process ${pid}`;
    if (version !== undefined && compareVersions(version, RAS_SINCE) < 0)
      return `${name} has NCCL ${version}, and RAS came with ${RAS_SINCE}: \`tccl diagnose\` reads logs and flight recordings of any version`;
    const environment = new Map(
      textOf(join(proc, pid, 'environ'))
        .split('\0')
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
    if (environment.get('NCCL_RAS_ENABLE') === '0') return `${name} runs with NCCL_RAS_ENABLE=0: start the job without it`;
    const network = linkOf(join(proc, pid, 'ns/net'));
    if (own !== undefined && network !== undefined && network !== own)
      return `${name} has a network of its own, as in a container: as root, \`nsenter --target ${pid} --net tccl watch\``;
    const address = environment.get('NCCL_RAS_ADDR');
    if (address !== undefined && !address.endsWith(`:${port}`))
      return `${name} has NCCL_RAS_ADDR=${address}: \`tccl watch ${address}\``;
  }
  return undefined;
}

/**
 * The other user whose process listens at a port of this host; undefined if it is this user's, or not known. Root gets none.
 *
 * @param proc the file system of processes, as Linux has it
 */
export function otherUserAt(port: number, proc = '/proc', ownUid = userInfo().uid): string | undefined {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const users = ['tcp', 'tcp6']
    .flatMap((table) =>
      textOf(join(proc, 'net', table))
        .split('\n')
        .slice(1),
    )
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => state === LISTENS && local.endsWith(`:${hex}`))
    .map((fields) => Number(fields[UID_FIELD]));
  const [first] = users;
  if (first === undefined || ownUid <= 0 || users.includes(ownUid)) return undefined;
  const [, name] = new RegExp(`^([^:]*):[^:]*:${first}:`, 'm').exec(textOf('/etc/passwd')) ?? [];
  return name === undefined ? `uid ${first}` : `user ${name}`;
}

/** State of a listening socket, and the field of the user, in Linux' tables of sockets. */
const LISTENS = '0A';
const UID_FIELD = 7;
