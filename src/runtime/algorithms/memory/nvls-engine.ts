import type { EngineCall } from '../queued-call.js';
import type { Bootstrap } from '../../bootstrap/bootstrap.js';
import { decodeCall, type Call } from '../call.js';
import { Nvls, NVLS_BYTES } from './nvls.js';
import { MISMATCH } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import { Multicast } from '../../device/multicast.js';
import type { Team } from '../../device/team.js';
import type { TcclError } from '../../../errors.js';
import { mismatchAmong } from '../mismatch.js';
import { TeamEngine } from './team-engine.js';
import { defined } from '../../../defined.js';

/**
 * The algorithm *NVLS* as an engine: with detection of failures. It runs beside *direct* on the same team, whose engine
 * reports failures to the others.
 */
export class NvlsEngine extends TeamEngine {
  private constructor(
    team: Team,
    localRanks: readonly number[],
    readonly nvls: Nvls,
    readonly multicast: Multicast,
  ) {
    super(team, localRanks);
  }

  /** Every rank of the team calls it: the first creates the multicast object, and the bootstrap network carries its handle. */
  static async open(bootstrap: Bootstrap, team: Team, libc: Libc | undefined): Promise<NvlsEngine> {
    const { segment, localRank, nLocalRanks } = team;
    const { localRanks } = bootstrap;
    const made = localRank === 0 ? Multicast.create(segment, nLocalRanks, NVLS_BYTES) : undefined;
    const handle = await bootstrap.broadcast(made?.handle ?? new Uint8Array(), defined(localRanks[0]), 'host');
    const multicast = made ?? Multicast.open(segment, handle);
    multicast.add(localRank);
    const memory = team.allocateBytes(NVLS_BYTES);
    new Uint8Array(segment.buffer, memory, NVLS_BYTES).fill(0);
    multicast.bind(memory);
    // Mapping must wait until all have bound.
    await bootstrap.barrier('host');
    const view = multicast.map(segment.kernels);
    // No rank may close, and so unbind, before all have mapped.
    await bootstrap.barrier('host');
    return new NvlsEngine(team, localRanks, new Nvls(team, libc, view), multicast);
  }

  get steps(): number {
    return this.nvls.steps;
  }

  begin(call: EngineCall, spins: number, mark = 0): number {
    this.nvls.begin(call, call.code | mark);
    return this.progress(spins);
  }

  progress(spins: number): number {
    const status = this.nvls.progress(spins);
    if (status === MISMATCH) throw this.mismatch();
    return status;
  }

  /** Calls from before a rank left are valid. */
  protected leaver(): number | undefined {
    const left = this.localRanks.flatMap((_, local) => (this.team.hasLeft(local) ? [local] : []));
    return this.nvls.late().find((local) => left.includes(local));
  }

  protected awaited(): number[] {
    return this.nvls.late();
  }

  underWay(): Call | undefined {
    const { code, root, count } = this.nvls.posted(this.team.localRank);
    return decodeCall(code, root, count);
  }

  abort(): void {
    this.nvls.forget();
  }

  /** Nothing to free: ranks that close later may still read this one's memory, which belongs to the team. */
  close(): Promise<void> {
    this.nvls.forget();
    this.multicast.close();
    const { multicast, team } = this;
    if (team.localRank === 0)
      team.segment.when(
        () => !multicast.isUsed,
        () => multicast.destroy(),
      );
    return Promise.resolve();
  }

  protected mismatch(): TcclError {
    const { sequence } = this.nvls.posted(this.team.localRank);
    const callOf = (local: number): Call | undefined => {
      const posted = this.nvls.posted(local);
      return posted.sequence === sequence ? decodeCall(posted.code, posted.root, posted.count) : undefined;
    };
    return mismatchAmong(this.localRanks, callOf);
  }
}
