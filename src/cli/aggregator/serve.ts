import { Aggregator } from '../../runtime/aggregator/aggregator.js';
import { formatAddress, parseAddress } from '../../runtime/bootstrap/address.js';
import { readBootstrapEnvironment } from '../../runtime/bootstrap/environment.js';
import { chooseInterface, systemInterfaces } from '../../runtime/bootstrap/interfaces.js';
import { secretOf, UniqueId } from '../../runtime/bootstrap/unique-id.js';
import { SystemError } from '../../errors.js';
import { complain, print } from '../output.js';

/** Serves until SIGINT or SIGTERM, or until the `tccl run` that started it has ended. */
export async function serveAggregator(listen: string | undefined): Promise<void> {
  const { interfaceName, family, commSecret } = readBootstrapEnvironment(process.env);
  const given = listen === undefined ? undefined : await UniqueId.fromHostPort(listen, commSecret);
  const address = given?.root ?? { host: chooseInterface(systemInterfaces(), { interfaceName, family }).host, port: 0 };
  const id = given ?? UniqueId.create(address);
  const aggregator = await Aggregator.open({ ...address, secret: secretOf(id) });
  const at = formatAddress(aggregator.address);
  const text =
    given === undefined ? new UniqueId(aggregator.address, secretOf(id)).toString() : formatAddress(parseAddress(listen ?? ''));
  // Listening keeps no process alive.
  const alive = setInterval(() => undefined, 2 ** 30);
  const stopped = new Promise<string>((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    // Ctrl-C reaches the process group of tccl run, whose ranks may need time to end.
    process.on('SIGINT', () => process.send === undefined && resolve('SIGINT'));
    process.once('disconnect', () => resolve('the end of tccl run'));
  });
  if (process.send === undefined) {
    print(text);
    complain('tccl aggregator', `listens on ${at}; pass the line above to all ranks as TCCL_AGGREGATOR`);
  } else process.send(text);
  const why = await stopped;
  clearInterval(alive);
  aggregator.close(new SystemError('NETWORK', `the aggregator at ${at} was stopped (${why})`));
}
