import type { LogFinding } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { onHost, outputsOf, usedDevices } from './outputs.js';

/** Speeds of network ports: against those of the same name on other hosts, and against what a port supports. */
export function checkSpeeds(model: LogModel, known: readonly LogFinding[]): LogFinding[] {
  const ports = speeds(model);
  const named = new Set(known.filter(({ code }) => code === 'port-slow').flatMap(({ places }) => places.map(keyOf)));
  const between = betweenHosts(ports.filter(({ place }) => !named.has(keyOf(place))));
  for (const { places } of between) for (const place of places) named.add(keyOf(place));
  return [...between, ...belowSupported(model).filter(({ places: [place] }) => place === undefined || !named.has(keyOf(place)))];
}

type Place = LogFinding['places'][number];

const keyOf = ({ file, line }: Place) => `${file} ${line}`;

interface PortSpeed {
  /** Name of its host, or a mark of its file. */
  readonly host: string;
  readonly name: string;
  readonly card: string;
  /** Gb/s. */
  readonly rate: number;
  readonly place: Place;
}

function speeds(model: LogModel): PortSpeed[] {
  const hostOf = (host: string, { file }: Place) => (host === '' ? (model.files[file] ?? `file ${file + 1}`) : host);
  return [
    ...outputsOf(model, 'ports').flatMap(({ facts, host, place: at }) =>
      facts.ports.flatMap(({ device, port, card, layer, rate, isActive, place }) =>
        isActive !== true || rate === undefined
          ? []
          : [{ host: hostOf(host, at), name: `${device}:${port}`, card: `${card} ${layer}`, rate, place }],
      ),
    ),
    ...outputsOf(model, 'ethtool').flatMap(({ facts, host, place: at }) =>
      facts.ports.flatMap(({ name, speed, hasLink, place }) =>
        name === '' || speed === undefined || hasLink === false
          ? []
          : [{ host: hostOf(host, at), name, card: '', rate: speed / 1000, place }],
      ),
    ),
  ];
}

/** Hosts of a job are alike: a port that is slower than the same one of another host makes all of them slow. */
function betweenHosts(ports: readonly PortSpeed[]): LogFinding[] {
  const best = new Map<string, PortSpeed>();
  const idOf = ({ name, card }: PortSpeed) => `${name} ${card}`;
  for (const port of ports) if (port.rate > (best.get(idOf(port))?.rate ?? 0)) best.set(idOf(port), port);
  const slow = ports.filter((port) => {
    const other = best.get(idOf(port));
    return other !== undefined && other.host !== port.host && port.rate < other.rate;
  });
  const byHost = new Map<string, PortSpeed[]>();
  for (const port of slow) byHost.set(port.host, [...(byHost.get(port.host) ?? []), port]);
  return [...byHost].flatMap(([host, [first, ...more]]): LogFinding[] => {
    const other = first === undefined ? undefined : best.get(idOf(first));
    if (first === undefined || other === undefined) return [];
    const names = [first, ...more].map(({ name }) => name);
    return [
      {
        ...slowPort,
        problem: `${names.slice(0, 4).join(', ')}${names.length > 4 ? ` and ${names.length - 4} more` : ''} of ${host} ${names.length === 1 ? 'has' : 'have'} ${first.rate} Gb/s, ${names.length === 1 ? 'the same port' : 'the same ports'} of ${other.host} ${other.rate}`,
        places: [first.place, ...more.map(({ place }) => place), other.place],
      },
    ];
  });
}

const slowPort = {
  code: 'port-slow',
  severity: 'warning',
  kind: 'cost',
  explains: ['bandwidth-low', 'nic-unused'],
  cause: 'the link trained down: a cable, transceiver or switch port for less; or the port of the switch is set to less',
  remedy: 'look at both ends (`mlxlink -d <device> -m`, the port of the switch); replace the cable',
} as const satisfies Partial<LogFinding>;

/** Ports that run below their fastest mode, or one way at a time; a remark where the log goes by other ports. */
function belowSupported(model: LogModel): LogFinding[] {
  return outputsOf(model, 'ethtool').flatMap((output) =>
    output.facts.ports.flatMap(({ name, speed, fastest, isHalfDuplex, hasLink, place }): LogFinding[] => {
      if (name === '' || speed === undefined || hasLink === false) return [];
      const isBelow = fastest !== undefined && speed < fastest;
      if (!isBelow && !isHalfDuplex) return [];
      const used = usedDevices(model, output.host);
      const mode = isBelow ? `; its fastest mode has ${fastest / 1000}` : '';
      return [
        {
          ...slowPort,
          ...(used.size === 0 || used.has(name) ? {} : { severity: 'info', kind: 'note' }),
          problem: `${name}${onHost(output)} has ${speed / 1000} Gb/s${isHalfDuplex ? ' and sends one way at a time (half duplex)' : ''}${mode}`,
          places: [place],
        },
      ];
    }),
  );
}
