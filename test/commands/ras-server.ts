import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { compareVersions } from '../../src/planner/versions/version.js';

/** A rank as RAS reports it. */
export interface ServedRank {
  readonly rank: number;
  readonly host?: string;
  readonly pid?: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly error?: number;
}

export interface ServedCommunicator {
  readonly hash: string;
  readonly ranks: readonly ServedRank[];
  readonly missing?: readonly { readonly rank: number; readonly dead: boolean }[];
}

/** Manners of a process that answers: by the rules of NCCL's versions, or badly. */
export interface Manners {
  readonly version: string;
  /** The communicators that the n-th STATUS shows, from 0. */
  readonly communicators: (n: number) => readonly ServedCommunicator[];
  /** Ends the report after this number of characters. */
  readonly cutAt?: number;
  /** Sends the report in pieces of this number of characters, each after the one before has left. */
  readonly pieces?: number;
  /** Answers every command with this. */
  readonly garbage?: string;
  /** Answers nothing after this number of reports, but keeps connections open, as a stopped process does. */
  readonly muteAfter?: number;
  /** Events that MONITOR shows. */
  readonly events?: readonly string[];
}

/** Speaks RAS' protocol over real sockets: framing, the commands of each version, JSON from 2.28.7 on. */
export class RasServer {
  readonly received: string[] = [];
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #reports = 0;
  #hasReported = (): unknown => undefined;
  #connections = 0;

  /** @param manners one a connection, in turn, as jobs that share a port answer */
  constructor(...manners: readonly Manners[]) {
    this.#server = createServer((socket) => {
      const how = manners[this.#connections++ % manners.length]!;
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
      socket.on('error', () => undefined);
      let text = '';
      let format = 'text';
      socket.on('data', (piece) => {
        text += piece.toString();
        for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
          const command = text.slice(0, end).replace(/\r$/, '');
          text = text.slice(end + 1);
          this.received.push(command);
          if (this.#reports >= (how.muteAfter ?? Infinity)) continue;
          if (how.garbage !== undefined) socket.write(how.garbage);
          else if (/^client protocol /i.test(command)) socket.write('SERVER PROTOCOL 2\n');
          else if (/^timeout \d+$/i.test(command)) socket.write('OK\n');
          else if (/^set format (text|json)$/i.test(command) && hasJson(how.version)) {
            format = command.split(' ')[2]!.toLowerCase();
            socket.write('OK\n');
          } else if (/^(verbose )?status$/i.test(command)) this.#report(socket, how, format);
          else if (/^monitor( \S+)?$/i.test(command) && hasMonitor(how.version)) {
            socket.write('OK\n');
            for (const event of how.events ?? []) socket.write(`[2026-11-26 12:00:00] ${event}\n`);
          } else socket.write(`ERROR: Unknown command ${command}\n`);
        }
      });
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Until it has given this number of reports. */
  reported(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#hasReported = () => this.#reports >= count && resolve();
      this.#hasReported();
    });
  }

  close(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #report(socket: Socket, { version, communicators, cutAt, pieces }: Manners, format: string): void {
    const shown = communicators(this.#reports++);
    this.#hasReported();
    const report = format === 'json' ? rasJson(version, shown) : rasText(version, shown);
    if (pieces === undefined) socket.end(report.slice(0, cutAt));
    else sendPieces(socket, report, pieces);
  }
}

function sendPieces(socket: Socket, rest: string, length: number): void {
  if (rest === '') socket.end();
  else socket.write(rest.slice(0, length), () => setImmediate(sendPieces, socket, rest.slice(length), length));
}

function hasJson(version: string): boolean {
  return compareVersions(version, '2.28.7') >= 0;
}

function hasMonitor(version: string): boolean {
  return compareVersions(version, '2.29.2') >= 0;
}

/** The layout of NCCL 2.28.7 to 2.32; 2.28.9 leaves out the commas between missing ranks. */
export function rasJson(version: string, communicators: readonly ServedCommunicator[]): string {
  const rank = ({ rank, host = `10.0.0.${1 + (rank >> 3)}`, pid = 4000 + rank, counts, error = 0 }: ServedRank) => `        {
          "rank": ${rank},
          "host": "${host}",
          "pid": ${pid},
          "cuda_dev": ${rank % 8},
          "nvml_dev": ${rank % 8},
          "status": {
            "init_state": 0,
            "async_error": ${error},
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": false
          },
          "collective_counts": ${JSON.stringify(counts)}
        }`;
  const missing = ({ rank, dead }: { rank: number; dead: boolean }) => `        {
          "rank": ${rank},
          "host": "10.0.0.${1 + (rank >> 3)}",
          "pid": ${4000 + rank},
          "cuda_dev": ${rank % 8},
          "nvml_dev": ${rank % 8},
          "status": {
            "unresponsive": true,
            "considered_dead": ${dead}
          }
        }`;
  const each = ({ hash, ranks, missing: absent = [] }: ServedCommunicator) => `    {
      "hash": "${hash}",
      "secondary_hash": "0x1:0x2",
      "size": ${ranks.length + absent.length},
      "ranks_count": ${ranks.length},
      "missing_ranks_count": ${absent.length},
      "ranks": [
${ranks.map(rank).join(',\n')}
      ],
      "missing_ranks": [
${absent.map(missing).join(version === '2.28.9' ? '\n' : ',\n')}
      ]
    }`;
  return `{
  "nccl_version": "${version}",
  "cuda_runtime_version": 12090,
  "cuda_driver_version": 12090,
  "timestamp": "2026-11-26 12:00:00",
  "communicators_count": ${communicators.length},
  "communicators": [
${communicators.map(each).join(',\n')}
  ],
  "ras": {
    "collection_time_sec": 0.002,
    "timeouts_count": 0
  }
}
`;
}

/** The words of NCCL 2.24 to 2.30: only communicators whose ranks differ are named. */
function rasText(version: string, communicators: readonly ServedCommunicator[]): string {
  const differing = communicators.filter(({ ranks }) => new Set(ranks.map(({ counts }) => counts['AllReduce'])).size > 1);
  const mismatch = ({ hash, ranks }: ServedCommunicator, index: number) => {
    const values = [...new Set(ranks.map(({ counts }) => counts['AllReduce'] ?? 0))];
    const groups = values
      .map((value) => ({ value, members: ranks.filter(({ counts }) => counts['AllReduce'] === value) }))
      .sort((a, b) => b.members.length - a.members.length);
    const lines = groups.flatMap(({ value, members }, place) =>
      place === 0
        ? [`  ${members.length} ranks have launched up to operation ${value}`]
        : [
            `  ${members.length} ranks have launched up to operation ${value}`,
            ...members.map(
              ({ rank }) =>
                `  Rank ${rank} -- GPU ${rank % 8} managed by process ${4000 + rank} on node 10.0.0.${1 + (rank >> 3)}`,
            ),
          ],
    );
    return `#${index}-0 (${hash.replace(/^0x/, '').padStart(16, '0')}) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n${lines.join('\n')}\n`;
  };
  const rows = communicators.map(
    ({ ranks }, index) =>
      `${String(index).padStart(5)}         1  ${String(Math.ceil(ranks.length / 8)).padStart(8)}         8  ${String(ranks.length).padStart(8)}  ${String(ranks.length).padStart(8)}   RUNNING  ${differing.includes(communicators[index]!) ? 'MISMATCH' : '      OK'}`,
  );
  return `NCCL version ${version} compiled with CUDA 12.6
CUDA runtime version 12060, driver version 12060

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          8            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
${rows.join('\n')}

Errors
======

Warnings
========

${differing.map(mismatch).join('\n')}`;
}
