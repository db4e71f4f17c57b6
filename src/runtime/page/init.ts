import { MAY_BLOCK } from '#platform/process';
import { describeValue } from '../../describe-value.js';
import { InvalidUsageError, ofCall, TcclError, TimeoutError } from '../../errors.js';
import { UniqueId } from '../bootstrap/unique-id.js';
import { withCallerFrames } from '../caller-stack.js';
import { Communicator } from '../communicator/communicator.js';
import { checkOptions, type CommunicatorConfig } from '../resources/config.js';
import { runtimeSettings } from '../resources/options.js';
import { setUp, type SetUpSteps } from '../init/set-up.js';
import type { CommunicatorParts } from '../resources/shared-resources.js';
import { nameRanks } from '../bootstrap/rank-list.js';
import { loadKernels } from '../device/kernels/kernels-wasm.js';
import { RankLines, reaches } from '../device/rank-lines.js';
import { Segment } from '../device/segment.js';
import { createMemory } from '../device/shared-memory.js';
import { setImmediate, setTimeout } from '../platform/platform.js';
import { afterWatching } from '../progress/watch-clock.js';
import { withAnySignal } from '../abort-signals.js';
import { connectInPage } from './connect.js';
import { makeChannel } from './port-connection.js';
import { checkIsolated, placeHere, type PagePlace, type RankPlace } from './place.js';
import type { PageInitOptions } from './options.js';

/**
 * Joins the communicator of all ranks of this page; resolves when all have joined. In the page's own thread it makes a
 * communicator of one rank, whose calls have no blocking form.
 *
 * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `UNKNOWN_NAME`; InvalidUsageError `ENVIRONMENT`,
 *   `RANK_UNKNOWN`, `DEVICE_DUPLICATE`; TimeoutError `RANK_MISSING` with the ranks that did not join; RemoteError `RANK_DIED`;
 *   SystemError `SHARED_MEMORY` in a page without cross-origin isolation, `OUT_OF_MEMORY`
 */
export function init(options: PageInitOptions = {}): Promise<Communicator> {
  return withCallerFrames(
    join(options).then(
      (parts) => new Communicator(parts),
      (error: unknown) => {
        throw error instanceof TcclError ? ofCall(error, 'init') : error;
      },
    ),
  );
}

/** A thread may have one rank; its later calls of init() make communicators of their own, as in Node.js. */
let isTaken = false;

async function join(options: PageInitOptions): Promise<CommunicatorParts> {
  const given = checkOptions('init', options, ['rank', 'nRanks', 'device', 'env', 'onWarning']);
  checkIsolated('init');
  await loadKernels();
  const config: CommunicatorConfig = MAY_BLOCK ? given : { ...given, blocking: false };
  const { rank, nRanks, signal, timeoutMs } = options;
  if ((rank ?? 0) !== 0 || (nRanks ?? 1) !== 1) {
    throw new InvalidUsageError(
      'RANK_UNKNOWN',
      `init: rank ${describeValue(rank)} of ${describeValue(nRanks)}: ranks of a page get their numbers from spawnRanks; ` +
        'only rank 0 of 1 can be named',
    );
  }
  const fromEnv = runtimeSettings(options.env ?? {});
  const isAlone = rank !== undefined || isTaken;
  const place = (isAlone ? undefined : await placeHere('init', timeoutMs)) ?? alone();
  isTaken ||= !isAlone;
  const ofPage = options.env === undefined ? runtimeSettings(place.env) : fromEnv;
  const settings = timeoutMs === undefined ? ofPage : { ...ofPage, timeoutMs, isOfProgram: true, initTimeoutMs: timeoutMs };
  const segment = Segment.ofThreads(place.memory, place.rank, place.nRanks);
  segment.ranks.setReach(reaches.notAll);
  const late = new AbortController();
  const lift = afterWatching(settings.initTimeoutMs, () => late.abort(missing(segment.ranks, place, settings.initTimeoutMs)));
  try {
    return await withAnySignal([signal, late.signal], async (stop) => {
      const bootstrap = await connectInPage(place, options.device, stop).catch((error: unknown) => {
        segment.close();
        throw error;
      });
      const id = UniqueId.create({ host: 'page', port: 1 });
      const ofInit = { settings, network: noNetwork, id, join: undefined, options, onLeft: () => endSoon(place), config };
      const steps: SetUpSteps = {
        join: () => ({ segment, shared: true, reason: undefined }),
        prepare: () => {
          const facts = { job: '', version: '', shared: true, hosts: [] };
          segment.board.open({ rank: place.rank, nRanks: place.nRanks, facts });
          return {};
        },
      };
      return setUp(bootstrap, ofInit, steps, stop);
    });
  } finally {
    lift();
  }
}

const noNetwork = { hostId: undefined, interfaceName: undefined, family: undefined, commSecret: undefined };

function alone(): RankPlace {
  const { port1: control } = makeChannel();
  return { rank: 0, nRanks: 1, memory: createMemory(), lines: [undefined], control, lock: '', env: {}, post: () => undefined };
}

/** Reports to the page that this rank has left, once the program has seen the end of its close(). */
function endSoon({ post }: RankPlace): void {
  setImmediate(() => setTimeout(() => post({ kind: 'ended' }), 0));
}

function missing(lines: RankLines, { nRanks }: PagePlace, limitMs: number): TimeoutError {
  const ranks = Array.from({ length: nRanks }, (_, rank) => rank).filter((rank) => lines.reachOf(rank) === reaches.unknown);
  const who = ranks.length === 0 ? 'a rank' : nameRanks(ranks);
  return new TimeoutError('RANK_MISSING', `${who} did not join within ${limitMs / 1000} s: does each worker call init`, {
    ranks,
  });
}
