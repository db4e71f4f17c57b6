import type { Picture } from '../../view/draw/picture.js';
import { subjectsOfRanks } from '../../view/cluster/model.js';
import { hostsPicture, placesOf, type RankPlace } from '../../view/incident/hosts.js';
import { lanesPicture } from '../../view/incident/lanes.js';
import { rolesOf, standingsOf } from '../../view/incident/standing.js';
import { highlighted } from '../../view/machine/highlight.js';
import type { ReadJob } from '../log.js';
import type { Planned } from '../planned.js';
import { machinePictures } from './machine.js';

/** Ranks whose GPUs are framed on the machine's drawing. */
const MOST_FRAMES = 8;

/** Hosts by who waits for whom, positions of ranks, and the machine with the GPUs that others wait for. */
export function incidentPictures({ model, diagnosis }: ReadJob, made: Planned | undefined, width: number | undefined): Picture[] {
  const { findings } = diagnosis;
  const roles = rolesOf(model, findings);
  const planned = made === undefined ? () => undefined : placesInPlan(made);
  const places = placesOf(model, findings, planned);
  const hosts = hostsPicture(places, roles, width);
  const late = places.filter(({ rank, subject }) => roles.of(rank) === 'late' && !subject.startsWith('rank/'));
  return [
    ...(hosts === undefined ? [] : [hosts]),
    ...standingsOf(model, roles).map((standings) => lanesPicture(standings, width)),
    ...(made === undefined || late.length === 0 ? [] : framed(machinePictures(made, width), late.slice(0, MOST_FRAMES))),
  ];
}

function placesInPlan({ plan, prepared }: Planned): (rank: number) => RankPlace | undefined {
  const { nRanks, nNodes, rankToNode } = plan.nodes;
  const subjectOf = subjectsOfRanks(plan, prepared);
  return (rank) =>
    rank < 0 || rank >= nRanks
      ? undefined
      : { rank, host: nNodes > 1 ? `node ${rankToNode[rank] ?? 0}` : (plan.hosts[0]?.name ?? ''), subject: subjectOf(rank) };
}

/** Pictures of machines that have one of the GPUs, with frames around them. */
function framed(pictures: readonly Picture[], late: readonly RankPlace[]): Picture[] {
  return pictures.flatMap((picture) => {
    const here = late.filter(({ subject }) => picture.marks.some((mark) => mark.subject === subject));
    if (here.length === 0) return [];
    return [
      here.reduce((drawn, { rank, subject }) => highlighted(drawn, [subject], `rank ${rank}, for which others wait`), picture),
    ];
  });
}
