// Makes calls on arrays of a device, and the same calls on arrays of the host, and compares the results.

/** Collectives by name: lengths of input and output in parts, and whether the root alone has them. */
const shapes = {
  allReduce: { send: 1, recv: 1, combines: true },
  reduce: { send: 1, recv: 1, receives: 'root', combines: true },
  broadcast: { send: 1, recv: 1, sends: 'root' },
  allGather: { send: 1, recv: 'all' },
  reduceScatter: { send: 'all', recv: 1, combines: true },
  allToAll: { send: 'all', recv: 'all' },
  gather: { send: 1, recv: 'all', receives: 'root' },
  scatter: { send: 'all', recv: 1, sends: 'root' },
};

/** Arguments of a call, of arrays of the device or of the host. */
function argumentsOf(name, send, recv, operator, root, options) {
  const { combines, sends, receives } = shapes[name];
  const rooted = sends ?? receives;
  return [send, recv, ...(combines ? [operator] : []), ...(rooted === undefined ? [] : [root]), options];
}

const valueOf = (type, value) => (type === BigInt64Array ? BigInt(value) : value);

/** Elements that differ between ranks and places, small enough to add exactly. */
function filled(type, length, rank, options) {
  const array = new type(length);
  // As float16: 1 to 4.
  if (options?.type === 'float16') for (let i = 0; i < length; i++) array[i] = 0x3c00 + 0x400 * ((i + rank) % 3);
  else for (let i = 0; i < length; i++) array[i] = valueOf(type, ((i * 7 + rank * 3) % 11) + 1);
  return array;
}

/** Returns a line for each call whose result differs from the host's. */
export async function collectives(comm, gpu, { counts = [1, 24, 1000], types = everyType } = {}) {
  const { rank, nRanks } = comm;
  const wrong = [];
  let calls = 0;
  for (const [type, options, operators] of types) {
    for (const name of Object.keys(shapes)) {
      for (const count of counts) {
        for (const inPlace of [false, true]) {
          const { send, recv, combines, sends, receives } = shapes[name];
          const root = count % nRanks;
          const operator = combines ? operators[count % operators.length] : undefined;
          const partsOf = (kind) => (kind === 'all' ? nRanks : 1);
          const align = 4 / Math.min(4, type.BYTES_PER_ELEMENT);
          const part = Math.ceil(count / align) * align;
          const hasInput = sends === undefined || rank === root;
          const hasOutput = receives === undefined || rank === root;
          const lengths = [partsOf(send) * part, partsOf(recv) * part];
          // In place, the smaller array is this rank's part of the larger.
          const longest = filled(type, Math.max(...lengths), rank, options);
          const own = (array, length) =>
            length === array.length ? array : (array.subarray ?? array.slice).call(array, rank * part, (rank + 1) * part);
          const host = inPlace ? longest.slice() : undefined;
          const input = inPlace ? own(host, lengths[0]) : filled(type, lengths[0], rank, options);
          const output = inPlace ? own(host, lengths[1]) : new type(lengths[1]);
          const [whole, sent, received] = await deviceArrays(gpu, type, inPlace, longest, input, output, own, lengths);
          const pick = (array, has) => (has || inPlace ? array : null);
          const isRooted = (sends ?? receives) !== undefined;
          await comm[name](...argumentsOf(name, pick(input, hasInput), pick(output, hasOutput), operator, root, options));
          await gpu[name](...argumentsOf(name, pick(sent, hasInput), pick(received, hasOutput), operator, root, options));
          calls++;
          const [wanted, got] = inPlace ? [host, await whole.download()] : [output, await received.download()];
          const differs = wanted.findIndex((value, index) => value !== got[index]);
          if (differs >= 0 && (hasOutput || !isRooted || !inPlace))
            wrong.push(
              `${name} of ${part} ${type.name}${inPlace ? ' in place' : ''}, root ${root}, ${operator}: element ${differs} is ${got[differs]}, not ${wanted[differs]}`,
            );
          for (const array of new Set([whole, sent, received])) array?.free();
        }
      }
    }
  }
  return { calls, wrong };
}

async function deviceArrays(gpu, type, inPlace, longest, input, output, own, lengths) {
  if (inPlace) {
    const whole = await gpu.alloc(type, longest.length);
    await whole.upload(longest);
    return [whole, own(whole, lengths[0]), own(whole, lengths[1])];
  }
  const [sent, received] = [await gpu.alloc(type, input.length), await gpu.alloc(type, output.length)];
  await sent.upload(input);
  return [undefined, sent, received];
}

const everyType = [
  [Float32Array, undefined, ['sum', 'max', 'avg']],
  [Int32Array, undefined, ['sum', 'min', 'bxor']],
  [Uint8Array, undefined, ['sum', 'max']],
  [BigInt64Array, undefined, ['sum', 'prod']],
  [Uint16Array, { type: 'float16' }, ['sum', 'max']],
];

/** Calls that are made of several steps on the host, in an order that all ranks keep. */
export async function inChunks(comm, gpu) {
  const { wrong } = await collectives(comm, gpu, { counts: [1_200_001], types: [[Float32Array, undefined, ['sum', 'max']]] });
  const x = await gpu.alloc(Float32Array, 3_000_000);
  await x.upload(new Float32Array(3_000_000).map((_, i) => (i % 1000) + comm.rank));
  // Without await between them: each is in place on the result of the one before.
  await Promise.all([gpu.allReduce(x), gpu.allReduce(x, x, 'max'), comm.barrier(), gpu.allReduce(x, x, 'avg')]);
  const sum = await x.download();
  const wanted = (i) => comm.nRanks * (i % 1000) + (comm.nRanks * (comm.nRanks - 1)) / 2;
  const at = sum.findIndex((value, i) => value !== wanted(i));
  if (at >= 0) wrong.push(`three in a row: element ${at} is ${sum[at]}, not ${wanted(at)}`);
  x.free();
  return wrong;
}

/** Messages around the ring, alone and in a group with collectives; own operators and limits. */
export async function others(comm, gpu) {
  const { rank, nRanks } = comm;
  const [right, left] = [(rank + 1) % nRanks, (rank + nRanks - 1) % nRanks];
  const make = async (value, length = 1000) => {
    const array = await gpu.alloc(Float32Array, length);
    await array.upload(new Float32Array(length).fill(value));
    return array;
  };
  const [x, y, z] = [await make(rank), await make(-1), await make(rank, 500_000)];
  await Promise.all([gpu.send(x, right), gpu.recv(y, left)]);
  const received = (await y.download())[999];
  await gpu.group(() => {
    void gpu.send(x.slice(0, 8), right, { tag: 5 });
    void gpu.recv(y.slice(992), left, { tag: 5 });
    void gpu.allReduce(z);
  });
  const grouped = [(await y.download())[991], (await y.download())[992], (await z.download())[499_999]];
  await gpu.allReduce(x, y, (a, b) => a * 10 + b, { timeoutMs: 60_000 });
  const own = (await y.download())[0];
  await gpu.allReduce(z, z, 'max', { timeoutMs: 60_000 });
  const limited = (await z.slice(4, 6).download())[1];
  const empty = await gpu.alloc(Float32Array, 0);
  await gpu.allReduce(empty);
  for (const array of [x, y, z, empty]) array.free();
  return { received, grouped, own, limited, order: await order(make, gpu, left, right) };
}

/** Numbers of messages that are sent and received without `await` between them, some in groups, in the order of the receives. */
async function order(make, gpu, left, right) {
  const sent = await Promise.all(Array.from({ length: 8 }, (_, number) => make(number, number === 0 ? 50_000 : 2000)));
  const received = await Promise.all(sent.map(({ length }) => make(-1, length)));
  const grouped = (call, from) =>
    gpu.group(() => {
      for (const number of [from, from + 1]) void call(number);
    });
  const send = (number) => gpu.send(sent[number], right);
  const recv = (number) => gpu.recv(received[number], left);
  // A group's messages do not wait for the collectives before its own.
  const long = await make(1, 100_000);
  const reduced = await make(1);
  await Promise.all([
    gpu.allReduce(long),
    send(0),
    gpu.group(() => {
      void gpu.allReduce(reduced);
      void grouped(send, 1);
    }),
    ...[3, 4, 5, 6, 7].map(send),
    recv(0),
    recv(1),
    grouped(recv, 2),
    ...[4, 5, 6, 7].map(recv),
  ]);
  const values = [];
  for (const array of received) values.push((await array.download()).at(-1));
  for (const array of [...sent, ...received, long, reduced]) array.free();
  return values;
}

/**
 * Messages of errors, each of which leaves the device usable.
 *
 * @param kit the device's own: `refusals` are further things to try, by name
 */
export async function refusals(comm, gpu, kit) {
  const x = await gpu.alloc(Float32Array, 4);
  const freed = await gpu.alloc(Float32Array, 4);
  freed.free();
  const said = {};
  const tryOut = async (name, run) => {
    try {
      await run();
      said[name] = 'nothing';
    } catch (error) {
      said[name] = `${error.code}: ${error.message}`;
    }
  };
  await tryOut('no class', () => gpu.wrap(kit.make(16), 'float32'));
  await tryOut('odd elements', () => gpu.wrap(kit.make(12), Float64Array));
  await tryOut('long slice', () => x.slice(2, 5));
  await tryOut('freed', () => gpu.allReduce(freed));
  await tryOut('host array', () => gpu.allReduce(new Float32Array(4)));
  await tryOut('operator', () => gpu.allReduce(x, x, 'add'));
  await tryOut('misplaced', () => gpu.allReduce(x, 'max'));
  await tryOut('type', async () => gpu.allReduce(await gpu.alloc(Uint16Array, 2)));
  await tryOut('types', async () => gpu.allReduce(x, await gpu.alloc(Int32Array, 4)));
  await tryOut('root', () => gpu.broadcast(x, x, 9));
  await tryOut('short', async () => gpu.allGather(x, x.slice(0, 2)));
  await tryOut('overlap', () => gpu.allReduce(x.slice(0, 3), x.slice(1, 4)));
  await tryOut('no input', () => gpu.allReduce(null));
  await tryOut('upload class', () => x.upload(new Float64Array(4)));
  await tryOut('upload length', () => x.upload(new Float32Array(3)));
  await tryOut('peer', () => gpu.send(x, 17));
  await tryOut('async group', () => gpu.group(async () => {}));
  await tryOut('group', () => gpu.group(() => void gpu.allReduce(freed)));
  await tryOut('option', () => gpu.allReduce(x, x, 'sum', { typ: 'float32' }));
  // Of one rank: the others wait for none of these calls.
  const alone = async (name, run) => {
    if (comm.rank === comm.nRanks - 1) await tryOut(name, run);
    said[name] = await comm.broadcastObject(said[name], comm.nRanks - 1);
  };
  const limit = { timeoutMs: 20_000 };
  await alone('bits of floats', () => gpu.allReduce(x, x, 'band', limit));
  await alone('half a pair', () => gpu.allReduce(x.slice(0, 3), x.slice(0, 3), 'minloc', limit));
  await alone('no scalar', () => gpu.allReduce(x, x, { premulSum: '2' }, limit));
  await alone('no unit', () => gpu.allReduce(x, x, { combine: () => {}, unit: 0 }, limit));
  await alone('tag', () => gpu.send(x, 0, { tag: -1, ...limit }));
  await alone('limit in a group', () => gpu.group(() => void gpu.send(x, 0, limit)));
  await alone('limit of a group', () => gpu.group(() => void gpu.send(x, 0), { timeoutMs: NaN }));
  await alone('endless', () => gpu.alloc(Float64Array, 2 ** 52));
  await tryOut('busy', () => {
    const reducing = gpu.allReduce(x);
    try {
      x.free();
    } finally {
      said.after = reducing.then(() => 'done');
    }
  });
  said.after = await said.after;
  for (const [name, run] of Object.entries(kit.refusals)) await tryOut(name, run);
  await gpu.allReduce(x);
  x.free();
  return said;
}

/** Code and message of a call's error, or `nothing`. */
export async function saidBy(run) {
  try {
    await run();
    return 'nothing';
  } catch (error) {
    return `${error.code}: ${error.message}`;
  }
}

/**
 * Words of the ranks when rank 1's device is lost, or a copy of it fails, while the others wait.
 *
 * @param kit `make(bytes)` and `destroy(buffer)` are the program's own, `lose()` ends the device
 */
export async function failures(comm, gpu, kit, how) {
  const { rank } = comm;
  const n = 2_400_000;
  const buffer = kit.make(4 * n);
  const x = how === 'destroyed' ? gpu.wrap(buffer, Float32Array) : await gpu.alloc(Float32Array, n);
  const lengths = { short: rank === 1 ? n / 2 : n }[how] ?? n;
  // Of the first of three steps: its input has been read by then.
  const combine = (a, b) => {
    if (rank === 1 && how === 'destroyed') kit.destroy(buffer);
    for (let i = 0; i < a.length; i++) a[i] += b[i];
  };
  const call = saidBy(() => gpu.allReduce(x.slice(0, lengths), undefined, how === 'destroyed' ? { combine } : 'sum'));
  if (rank === 1 && how === 'lost') kit.lose();
  const said = [await call, await saidBy(() => gpu.allReduce(x))];
  // The promise alone keeps no process alive.
  const alive = setInterval(() => undefined, 1000);
  const { message } = await comm.failed;
  clearInterval(alive);
  return [...said, message];
}
