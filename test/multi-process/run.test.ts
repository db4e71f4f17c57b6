import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bindRanks } from '../../src/runtime/launch/binding.js';
import { version } from '../../src/version.js';
import { tccl as tcclInProcess } from '../commands/in-process.js';
import { cliPath, fixture, gone, lacks, numbersOf, start, startTccl, tccl } from './cli.js';

const node = process.execPath;
const lines = (text: string) => text.trimEnd().split('\n').sort();

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tccl-run-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

describe('the environment of ranks', () => {
  it('has their number, and one address for all', async () => {
    const { code, stdout } = await tccl(['run', '-n', '3', '--no-prefix', node, fixture('place.mjs')]);
    expect(code).toBe(0);
    const places = lines(stdout).map((line) => JSON.parse(line) as { rank: number; commId: string });
    expect(places.map(({ rank }) => rank).sort()).toEqual([0, 1, 2]);
    expect(new Set(places.map(({ commId }) => commId)).size).toBe(1);
    for (const place of places) {
      expect(place).toMatchObject({
        launcher: 'tccl',
        nRanks: 3,
        localRank: place.rank,
        nLocalRanks: 3,
        commId: expect.stringMatching(/./) as string,
      });
    }
  });

  it('has the id of an aggregator with --collnet, which ends with the job', async () => {
    const script = 'echo "$TCCL_AGGREGATOR"; pgrep -P $PPID -f "main.js aggregator"';
    const { code, stdout } = await tccl(['run', '-n', '1', '--collnet', 'sh', '-c', script]);
    expect(code).toBe(0);
    const [id, pid] = stdout.trimEnd().split('\n').map((line) => line.replace('[0] ', '')); // prettier-ignore
    expect(id).toMatch(/^tccl1:/);
    await gone([Number(pid)]);
    const refused = await tccl([
      'run',
      '-n',
      '1',
      '--collnet',
      '--nnodes',
      '2',
      '--node-rank',
      '0',
      '--rendezvous',
      'a:1',
      'true',
    ]);
    expect(refused.stderr).toContain('start tccl aggregator, and set TCCL_AGGREGATOR on every node');
  });

  it('replaces the variables of a launcher around it', async () => {
    const { stdout } = await tccl(['run', '-n', '1', '--no-prefix', node, fixture('place.mjs')], {
      env: { TCCL_RANK: '7', TCCL_NRANKS: '8', TCCL_COMM_ID: 'outer' },
    });
    expect(JSON.parse(stdout)).toMatchObject({ rank: 0, nRanks: 1 });
    expect(stdout).not.toContain('outer');
  });

  it('has the variables of -x, the options behind the command, and the input for rank 0', async () => {
    const script = 'echo "$GREETING/$WORD $1 ($(cat))"';
    const { stdout } = await tccl(['run', '-n', '2', '-x', 'GREETING=a=b', '-x', 'WORD', 'sh', '-c', script, 'sh', '--grace'], {
      env: { WORD: 'here' },
      input: 'typed',
    });
    expect(lines(stdout)).toEqual(['[0] a=b/here --grace (typed)', '[1] a=b/here --grace ()']);
  });
});

describe('a job that waits', () => {
  /** Runs two ranks of a shell, and signals the process that `tccl run` names in a line. */
  async function told(script: string, line: RegExp, signal: NodeJS.Signals) {
    const { process: launcher, finished } = startTccl(['run', '-n', '2', '--no-prefix', '--', 'sh', '-c', script], {
      env: { TCCL_WARN_AFTER: '0.2' },
    });
    let [text, isSignalled] = ['', false];
    launcher.stderr?.on('data', (chunk: string) => {
      text += chunk;
      const pid = line.exec(text)?.[1];
      if (pid === undefined || isSignalled) return;
      isSignalled = process.kill(Number(pid), signal);
    });
    const { code, stderr } = await finished;
    expect(stderr).toMatch(line);
    return code;
  }

  it('for a stopped rank says so after TCCL_WARN_AFTER, and ends when that goes on', async () => {
    const line =
      /^tccl run: the job waits for rank 1: its process (\d+) is stopped, for 0\.2 s now; continue it with kill -CONT \1$/m;
    expect(await told('if [ $TCCL_RANK = 1 ]; then sh -c "kill -STOP \\$\\$"; fi', line, 'SIGCONT')).toBe(0);
  });

  it('for a rank after another ended with 0 says so, and kills nothing', async () => {
    const line =
      /^tccl run: rank 0 ended with code 0, 0\.2 s ago or more; the job waits for rank 1 \(process (\d+) (?:sleeps|computes)\)$/m;
    expect(await told('[ $TCCL_RANK = 0 ] || exec sleep 1000', line, 'SIGTERM')).toBe(143);
  });
});

describe('--bind-to', () => {
  const missing = lacks('taskset');
  it.skipIf(missing)(`core gives a rank one core${missing === undefined ? '' : ` (skipped: ${missing})`}`, async () => {
    const [cpus = ''] = bindRanks('core', 1);
    expect(await tccl(['run', '-n', '1', '--bind-to', 'core', node, '-p', 'os.availableParallelism()'])).toMatchObject({
      stdout: `[0] ${cpus.split(',').length}\n`,
      code: 0,
    });
  });
});

describe('the output of ranks', () => {
  it('appears in complete lines behind the rank, the last one included', async () => {
    const { stdout } = await tccl(['run', '-n', '3', '--', node, fixture('chatter.mjs')]);
    for (const rank of [0, 1, 2]) {
      const own = stdout.split('\n').filter((line) => line.startsWith(`[${rank}] rank ${rank} line `));
      expect(own.map((line) => Number(line.split(' ')[4]))).toEqual(Array.from({ length: 3000 }, (_, index) => index));
    }
    expect(stdout.trimEnd().split('\n')).toHaveLength(9000);
  });

  it('keeps stdout and stderr apart', async () => {
    const { stdout, stderr } = await tccl(['run', '-n', '2', 'sh', '-c', 'echo out; echo err >&2']);
    expect(lines(stdout)).toEqual(['[0] out', '[1] out']);
    expect(lines(stderr)).toEqual(['[0] err', '[1] err']);
  });

  it('is the same bytes for one rank without prefix', async () => {
    expect(await tccl(['run', '-n', '1', '--no-prefix', 'printf', 'a\\nb'])).toMatchObject({ stdout: 'a\nb', code: 0 });
  });

  it('goes to a file for each rank with --output-dir', async () => {
    const logs = join(directory, 'made', 'logs');
    const { stdout } = await tccl([
      'run',
      '-n',
      '2',
      '--output-dir',
      logs,
      'sh',
      '-c',
      'echo out $TCCL_RANK; echo err >&2; printf end',
    ]);
    expect(stdout).toBe('');
    expect(readFileSync(join(logs, 'rank-0.log'), 'utf8')).toBe('out 0\nerr\nend');
    expect(readFileSync(join(logs, 'rank-1.log'), 'utf8')).toBe('out 1\nerr\nend');
  });

  it('ends the job when its reader is gone', async () => {
    const ended = join(directory, 'ended');
    // Neither writes before both can hear SIGTERM.
    const bothUp = `: > ${directory}/up$TCCL_RANK; until test -e ${directory}/up0 -a -e ${directory}/up1; do :; done`;
    const rank = `trap 'echo $TCCL_RANK >> ${ended}; exit' TERM; ${bothUp}; while :; do echo y; done`;
    const { stdout } = await start('sh', ['-c', `"${node}" "${cliPath}" run -n 2 sh -c "$RANK" | head -n 3`], {
      env: { RANK: rank },
    }).finished;
    expect(stdout).toMatch(/^(\[[01]\] y\n){3}$/);
    expect(lines(readFileSync(ended, 'utf8'))).toEqual(['0', '1']);
  });
});

describe('a rank that fails', () => {
  it('gives its exit code and is named', async () => {
    const { code, stderr } = await tccl(['run', '-n', '3', 'sh', '-c', 'test $TCCL_RANK != 1 || exit 7']);
    expect(code).toBe(7);
    expect(stderr).toMatch(/^tccl run: rank 1 exited with code 7/);
  });

  it('is named with the signal that killed it, and no process of the others remains', async () => {
    const job = startTccl(['run', '-n', '3', '--grace', '0.2', node, fixture('family.mjs')]);
    const shown = await job.shown(/(up[^]*){3}/);
    const [victim] = numbersOf(shown.split('\n').find((line) => line.startsWith('[1]')) ?? '', 'pid');
    assert(victim !== undefined && victim > 1, shown); // 0 would be the process group of the tests
    process.kill(victim, 'SIGKILL');
    expect(await job.finished).toMatchObject({
      code: 137,
      stderr: 'tccl run: rank 1 was killed by SIGKILL; ending the other ranks\n',
    });
    await gone([...numbersOf(shown, 'pid'), ...numbersOf(shown, 'child')]);
  });

  it('ends ranks and their children that ignore SIGTERM', async () => {
    const command = `if [ $TCCL_RANK = 1 ]; then read line < ${directory}/go; exit 3; fi; exec "${node}" "${fixture('family.mjs')}" deaf`;
    await start('mkfifo', [`${directory}/go`]).finished;
    const job = startTccl(['run', '-n', '2', '--grace', '0.2', 'sh', '-c', command]);
    const shown = await job.shown(/up/);
    writeFileSync(`${directory}/go`, 'go\n');
    expect(await job.finished).toMatchObject({ code: 3, stdout: expect.stringContaining('deaf to SIGTERM') as string });
    await gone([...numbersOf(shown, 'pid'), ...numbersOf(shown, 'child')]);
  });

  it('gets its last lines printed before it is named', async () => {
    const { stderr } = await tccl(['run', '-n', '1', node, '-e', 'throw new Error("boom")']);
    const [error, named] = ['[0] Error: boom', 'tccl run: rank 0 exited with code 1'].map((text) => stderr.indexOf(text));
    expect(error).toBeGreaterThanOrEqual(0);
    expect(named).toBeGreaterThan(error!);
  });
});

describe('the end of a job', () => {
  it('ends processes that a rank left running in the background', async () => {
    const { code, stdout } = await tccl(['run', '-n', '2', '--grace', '0.2', 'sh', '-c', 'sleep 1000 & echo child=$!']);
    expect(code).toBe(0);
    await gone(numbersOf(stdout, 'child'));
  });

  it('comes with --timeout, and names the running ranks', async () => {
    // Rank 0 has to start and end within the time.
    const { code, stderr } = await tccl([
      'run',
      '-n',
      '2',
      '--timeout',
      '5',
      'sh',
      '-c',
      'test $TCCL_RANK = 0 || exec sleep 1000',
    ]);
    expect(code).toBe(124);
    expect(stderr).toBe('tccl run: not finished after 5 s: ending rank 1\n');
  });

  it('comes with --timeout after the ranks have said what they wait for', async () => {
    const { code, stderr } = await tccl(['run', '-n', '2', '--timeout', '8', node, fixture('late-rank.mjs')]);
    expect(code).toBe(124);
    expect(stderr).toMatch(
      /^\[0\] tccl: rank 0 has waited [\d.]+ s in allReduce of 1 float32 [^\n]*, for rank 1\b.*\n(?:[^\n]*rank 0[^\n]*\n)?tccl run: not finished after 8 s: rank 1 [^\n]*rank 0 waits[^\n]*; ending ranks 0,1\n$/,
    );
  }, 20_000);

  it('does not count the time in which the launcher was stopped for --timeout', async () => {
    const job = startTccl(['run', '-n', '1', '--timeout', '4', 'sh', '-c', 'echo up; read line'], { openInput: true });
    await job.shown(/up/);
    job.process.kill('SIGSTOP');
    await delay(5000); // there is nothing to wait for
    job.process.kill('SIGCONT');
    await delay(200); // so that it looks at the clock
    job.process.stdin?.end('line\n');
    expect(await job.finished).toMatchObject({ code: 0, stderr: '' });
  });

  it('includes a rank that has cleared its environment', async () => {
    const { code, stderr } = await tccl(['run', '-n', '1', '--timeout', '0.1', 'env', '-i', 'sleep', '1000']);
    expect({ code, stderr }).toEqual({ code: 124, stderr: 'tccl run: not finished after 0.1 s: ending rank 0\n' });
  });

  it('includes the ranks and their children even when the launcher is killed', async () => {
    const job = startTccl(['run', '-n', '2', node, fixture('family.mjs'), 'deaf']);
    const shown = await job.shown(/(up[^]*){2}/);
    job.process.kill('SIGKILL');
    expect(await job.finished).toMatchObject({ signal: 'SIGKILL' });
    await gone([...numbersOf(shown, 'pid'), ...numbersOf(shown, 'child')]);
  });
});

describe('signals to the launcher', () => {
  it.each(['SIGUSR1', 'SIGUSR2', 'SIGHUP'] as const)('%s reaches the ranks', async (signal) => {
    const job = startTccl(['run', '-n', '2', '--grace', '60', node, fixture('signals.mjs')]);
    await job.shown(/(listening[^]*){2}/);
    job.process.kill(signal);
    await job.shown(new RegExp(`(got ${signal}[^]*){2}`));
    job.process.kill('SIGTERM');
    expect(await job.finished).toMatchObject({ code: 5 });
  });

  it('SIGINT ends ranks that do not catch it, without an error message', async () => {
    const job = startTccl(['run', '-n', '2', node, fixture('signals.mjs')]);
    await job.shown(/(listening[^]*){2}/);
    job.process.kill('SIGINT');
    expect(await job.finished).toMatchObject({ code: 130, stderr: '' });
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s kills ranks that ignore it after the grace time', async (signal) => {
    const ignore =
      "for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => undefined); setInterval(() => undefined, 1000);";
    const job = startTccl(['run', '-n', '2', '--grace', '0.2', node, '-e', `${ignore} console.log('up')`]);
    await job.shown(/(up[^]*){2}/);
    job.process.kill(signal);
    expect(await job.finished).toMatchObject({
      code: 137,
      stderr: `tccl run: ranks 0,1 did not end within 0.2 s of ${signal}: killing\n`,
    });
  });

  it('a second SIGINT, and the grace time after --timeout, kill with a line', async () => {
    const ignore =
      "for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => console.log('got')); setInterval(() => undefined, 1000);";
    const job = startTccl(['run', '-n', '1', '--grace', '60', node, '-e', `${ignore} console.log('up')`]);
    await job.shown(/up/);
    job.process.kill('SIGINT');
    await job.shown(/got/);
    job.process.kill('SIGINT');
    expect(await job.finished).toMatchObject({
      code: 137,
      stderr: 'tccl run: rank 0 did not end before a second SIGINT: killing\n',
    });
    const late = await tccl(['run', '-n', '1', '--timeout', '4', '--grace', '0.2', node, '-e', ignore]);
    expect(late).toMatchObject({
      code: 124,
      stderr: 'tccl run: not finished after 4 s: ending rank 0\ntccl run: rank 0 did not end within 0.2 s of SIGTERM: killing\n',
    });
  }, 30_000);

  it('SIGINT is left to a rank that shares the terminal', async () => {
    const ignore =
      "process.on('SIGINT', () => console.log('interrupted')); process.on('SIGTERM', () => process.exit(5)); setInterval(() => undefined, 1000);";
    const job = startTccl(['run', '-n', '1', '--tty', '0', '--grace', '0', node, '-e', `${ignore} console.log('up')`]);
    await job.shown(/up/);
    job.process.kill('SIGINT');
    await job.shown(/interrupted/);
    job.process.kill('SIGTERM');
    // Nothing but the grace time of SIGTERM kills.
    expect([5, 137]).toContain((await job.finished).code);
  });

  it('a second SIGINT kills the remaining ranks', async () => {
    const job = startTccl(['run', '-n', '2', '--grace', '60', node, fixture('family.mjs'), 'deaf']);
    const shown = await job.shown(/(up[^]*){2}/);
    job.process.kill('SIGINT');
    await job.shown(/(deaf to SIGINT[^]*){2}/);
    job.process.kill('SIGINT');
    expect(await job.finished).toMatchObject({ code: 137 });
    await gone([...numbersOf(shown, 'pid'), ...numbersOf(shown, 'child')]);
  });
});

describe('a command that cannot be run', () => {
  it('is searched for beyond unreadable entries of PATH', async () => {
    symlinkSync('loop', join(directory, 'loop'));
    mkdirSync(join(directory, 'locked'), { mode: 0 });
    const path = [join(directory, 'loop'), join(directory, 'locked'), 'x'.repeat(5000), cliPath, process.env['PATH'] ?? ''].join(
      ':',
    );
    // Root may search all folders.
    const asOther =
      process.getuid?.() === 0 && lacks('setpriv') === undefined
        ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
        : ['env'];
    const run = (...command: string[]) =>
      start('env', [...asOther, '/usr/bin/env', `PATH=${path}`, node, cliPath, 'run', '-n', '1', ...command]).finished;
    expect(await run('echo', 'found')).toMatchObject({ stdout: '[0] found\n', stderr: '', code: 0 });
    expect(await run('no-such-command')).toMatchObject({ stderr: 'tccl run: no-such-command: command not found\n', code: 127 });
  });

  it('that is a JavaScript file is run with Node', async () => {
    const outcomes = [
      await tccl(['run', '-n', '2', fixture('place.mjs')]),
      await tccl(['run', '-n', '2', node, fixture('place.mjs')]),
    ];
    const [bare, withNode] = outcomes.map(({ code, stderr, stdout }) => ({ code, stderr, lines: stdout.split('\n').length }));
    expect(bare).toMatchObject({ code: 0, stderr: '' });
    expect(bare).toEqual(withNode);
  });

  it('that is perf names its hosts to tccl run, and its program fits the launch', async () => {
    const place = { TCCL_RANK: '0', TCCL_NRANKS: '3', TCCL_COMM_ID: '127.0.0.1:1' };
    const file = join(directory, 'pair.xml');
    const block = (peer: number) => `<tb id="0" send="${peer}" recv="${peer}" chan="0">`;
    const step = (s: number, type: string, at: number) =>
      `<step s="${s}" type="${type}" srcbuf="i" srcoff="${at}" dstbuf="o" dstoff="${at}" cnt="1" depid="-1" deps="-1" hasdep="0"/>`;
    const gpu = (id: number) =>
      `<gpu id="${id}" i_chunks="2" o_chunks="2" s_chunks="0">${block(1 - id)}${step(0, 's', id)}${step(1, 'rrcs', 1 - id)}${step(2, 'r', id)}</tb></gpu>`;
    writeFileSync(
      file,
      `<algo name="pair" coll="allreduce" proto="LL" ngpus="2" nchunksperloop="2" nchannels="1" inplace="1">${gpu(0)}${gpu(1)}</algo>`,
    );
    expect(await tccl(['perf', 'all_reduce', '--program', file], { env: place })).toMatchObject({
      code: 2,
      stderr: 'tccl: the program pair is for 2 ranks, and tccl started 3\n',
    });
    expect((await tcclInProcess(['perf', 'all_reduce', '-H', 'a:2'])).stderr).toContain('tccl run --hosts a:2,b:2 tccl perf');
  });

  it('that is tccl is this package where PATH has none', async () => {
    const { code, stdout, stderr } = await start('env', ['PATH=/nowhere', node, cliPath, 'run', '-n', '1', 'tccl', '--version'])
      .finished;
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `[0] ${version}\n`, stderr: '' });
  });

  it('because its environment is too large is an error of one line', async () => {
    // The system takes 128 KiB a variable, and ranks get more in this one.
    const { code, stderr } = await tccl(['run', '-n', '2', 'true'], { env: { GLIBC_TUNABLES: 'x'.repeat(131_000) } });
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'tccl: rank 0 could not be started: spawn E2BIG\n' });
  });

  it.each([22, 24, 26, 28, 30, 32, 34, 36, 40])(
    'with %i file descriptors is an error of one line, or succeeds',
    async (limit) => {
      const { code, stdout, stderr } = await start('sh', [
        '-c',
        `ulimit -n ${limit} && exec "$0" "$@"`,
        node,
        cliPath,
        'run',
        '-n',
        '4',
        '--grace',
        '0.2',
        'sh',
        '-c',
        'sleep 0.2',
      ]).finished;
      expect(stdout).toBe('');
      expect(code === 0 ? stderr : 'a job').toBe(code === 0 ? '' : 'a job');
      if (code !== 0) expect(stderr).toMatch(/^tccl( run)?: .*(EMFILE|too many open files).*\n$/);
    },
  );

  it('runs on this host alone where the list has no other, without ssh', async () => {
    expect(await tcclInProcess(['run', '--hosts', 'localhost:2', '--no-prefix', 'echo', 'x'])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: 'x\nx\n',
    });
  });

  const NO_DIRECTORY =
    'the directory /no/such/directory cannot be entered (ENOENT): make it, or give one that all hosts have with --wdir';
  it.each([
    [['no-such-command'], 127, 'tccl run: no-such-command: command not found\n'],
    [['no-such-program.mjs'], 127, 'tccl run: no-such-program.mjs: there is no such file\n'],
    [['./no/such/file'], 127, 'tccl run: ./no/such/file: command not found\n'],
    [['--wdir', '/no/such/directory', 'echo'], 1, `tccl run: ${NO_DIRECTORY}\n`],
    [['--hosts', 'localhost', '--wdir', '/no/such/directory', 'echo'], 1, `tccl run: host localhost: ${NO_DIRECTORY}\n`],
    [
      [fixture('processes.ts')],
      126,
      `tccl run: ${fixture('processes.ts')}: Node ${process.versions.node} cannot run TypeScript; install tsx in the project (npm install --save-dev tsx; from Node 20.6 on), use Node 22.6 or newer, or pass the JavaScript that the compiler writes\n`,
    ],
  ])('%s', async (command, code, stderr) => {
    expect(await tcclInProcess(['run', '-n', '2', ...command])).toMatchObject({ code, stderr, stdout: '' });
  });

  it.each([
    ['localhost:29555', '2', 1],
    ['localhost:29555', '1', 0],
    ['a:29555', '2', 0],
  ])('nodes that meet at %s, %s of them: %i warnings', async (address, nodes, warnings) => {
    const place = ['--nnodes', nodes, '--node-rank', '0', '--rendezvous', address];
    const { code, stderr } = await tcclInProcess(['run', ...place, '--dry-run', '-n', '1', 'true']);
    expect(code).toBe(0);
    expect(stderr).toBe(
      'tccl run: --rendezvous localhost:29555 joins only nodes of one host, because each host reaches itself there; for nodes on several hosts give a name or address of the host of node 0\n'.repeat(
        warnings,
      ),
    );
  });

  it.each([
    [['-n', '0', 'true'], "option '-n, --ranks <count>' argument '0' is invalid"],
    [['-np', '2', 'true'], 'It is -n here: tccl run -n 4'],
    [['-H', 'a:4,:2', 'true'], '":2" is no host: write HOST:RANKS, as in a:4,b:4'],
    [['-H', '-oProxyCommand=x', 'true'], '"-oProxyCommand=x" is no host'],
    [['-H', 'a:2,b:1', '-n', '4', 'true'], '4 ranks do not fit on the hosts, which take 3: raise their numbers'],
    [['-H', 'a:4', '--nnodes', '2', 'true'], '--hosts starts the ranks of all hosts from here, --nnodes those of this node only'],
    [['-H', 'a:4', '--ssh', "ssh 'x", 'true'], "--ssh ssh 'x is no command: write for example --ssh 'ssh -F config'"],
    [['-H', 'a:4', '--hostfile', 'hosts', 'true'], '--hosts and --hostfile both name the hosts'],
    [['--hostfile', '/nowhere/hosts', 'true'], '/nowhere/hosts: cannot be read: ENOENT'],
    [['--ssh', 'ssh', 'true'], '--ssh needs --hosts or --hostfile'],
    [['--nnodes', '2', 'true'], '--nnodes 2 needs --node-rank, which of them this is: 0 to 1'],
    [['--nnodes', '2', '--node-rank', '2', 'true'], '--node-rank 2 is not one of 2 nodes'],
    [['--nnodes', '2', '--node-rank', '1', 'true'], '--nnodes 2 needs --rendezvous HOST:PORT'],
    [['--nnodes', '2', '--node-rank', '1', '--rendezvous', 'a', 'true'], '"a" is not an address'],
    [['--nnodes', '2', '--node-rank', '1', '--rendezvous', 'a:1', '-n', '1,2,3', 'true'], '-n 1,2,3 has 3 numbers for 2 nodes'],
    ...['localhost:29555', '127.0.1.1:29555', '[::1]:29555', 'LOCALHOST:29555'].map((address): [string[], string] => [
      ['-H', 'a:1,b:1', '--rendezvous', address, 'true'],
      `--rendezvous ${address} cannot join 2 hosts: each of them reaches itself there; give a name or address of a, which has rank 0`,
    ]),
    [['-H', 'a:1', '--rendezvous', 'localhost', 'true'], '"localhost" is not an address'],
    [['--node-rank', '1', 'true'], '--node-rank needs --nnodes'],
    [['--rendezvous', 'a:1', 'true'], '--rendezvous needs --nnodes or --hosts'],
    [['--nproc_per_node', '4', 'true'], 'It is -n here.'],
    [['--rdzv-endpoint', 'a:1', 'true'], 'It is --rendezvous HOST:PORT here.'],
    [['--np', '4', 'true'], 'It is -n here.'],
    [['-ppn', '4', 'true'], 'It is -n here.'],
    [['-c', '4', 'true'], 'It is -n here.'],
    [['-genv', 'A', '1', 'true'], 'It is -x NAME=value here.'],
    [['--map-by', 'core', 'true'], 'It is --bind-to here.'],
    [['--mca', 'btl', 'tcp', 'true'], 'It is -x TCCL_…=value, for a setting of tccl, here.'],
    [['--stdin', '1', 'true'], 'It is --tty RANK here.'],
    [['--oversubscribe', 'true'], '--oversubscribe is not needed here: tccl run always does so; leave it out'],
    [['--standalone', 'true'], '--standalone is not needed here'],
    [['-n', '2', '--tty', '2', 'true'], '--tty 2: there is no such rank; they are 0 to 1'],
    [['--tty', '0', '-H', 'a:2', 'true'], '--tty gives a terminal to a rank that tccl run starts on this host'],
    [['--json', 'true'], '--json needs --dry-run'],
    [['--timeout', '0', 'true'], 'It must be more than 0; leave it out to wait without a limit.'],
    [['--grace', '-1', 'true'], "option '--grace <seconds>' argument '-1' is invalid"],
    [['-x', 'TCCL_NOT_SET_HERE', 'true'], 'TCCL_NOT_SET_HERE is not set here'],
    [['-x', '1=2', 'true'], 'It must be NAME or NAME=value'],
    [['--bind-to', 'socket', 'true'], 'Allowed choices are core, numa, none'],
    [[], "missing required argument 'command', as in: tccl run -n 4 node job.js --epochs 3"],
    [['-n', '2'], "missing required argument 'command', as in: tccl run -n 4 node job.js --epochs 3"],
    [['--output-dir', '/dev/null/logs', 'true'], "cannot write the ranks' output to /dev/null/logs"],
    [['--output-dir', '/proc/made/logs', 'true'], "cannot write the ranks' output to /proc/made/logs"],
    [['--output-dir', process.execPath, 'true'], `cannot write the ranks' output to ${process.execPath}`],
    [['--output-dir', 'long'.repeat(100), 'true'], 'name too long'],
    [['--output-dir', '', 'true'], 'It names no directory.'],
  ])('wrong use: %s', async (args, message) => {
    const { code, stderr } = await tcclInProcess(['run', ...args]);
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(code).toBe(args[0] === '--output-dir' && args[1] !== '' ? 1 : 2);
  });
});

describe('a terminal', () => {
  const missing = existsSync('/usr/bin/script') ? '' : ' (needs: script of util-linux)';
  /** A terminal's contents for ranks that run a command of the shell. */
  const shownOf = async (...args: string[]): Promise<string> => {
    const command = [process.execPath, cliPath, 'run', '-n', '2', ...args].map((word) => `'${word}'`).join(' ');
    const colored = `env -u NO_COLOR TERM=xterm ${command}`;
    return (await start('/usr/bin/script', ['-qec', colored, '/dev/null']).finished).stdout;
  };

  it.skipIf(missing)(`belongs to the rank of --tty alone${missing}`, async () => {
    const shown = await shownOf('--tty', '1', '--', 'sh', '-c', 'test -t 0 && test -t 1; echo "rank $TCCL_RANK: $?"');
    expect(shown).toMatch(/^rank 1: 0\r$/m);
    expect(shown).toMatch(/^\x1b\[\d+m\[0\]\x1b\[39m rank 0: 1\r$/m);
  });

  it.skipIf(missing)(`shows a progress line in one line, behind its rank${missing}`, async () => {
    const shown = await shownOf('--', 'sh', '-c', 'printf "10 %%\\r"; printf "90 %%\\r"; echo done');
    for (const rank of [0, 1]) expect(shown).toMatch(new RegExp(`\\[${rank}\\]\\x1b\\[39m done(\\x1b\\[K)?\\r\\n`));
    // States that the launcher read before their line ended.
    for (const [, prefix] of shown.matchAll(/(.{0,12})[19]0 %/g)) expect(prefix).toMatch(/\[[01]\]/);
  });

  it('or a pipe is the input of the rank of --tty, which writes without a prefix', async () => {
    const script = 'read line; echo "$TCCL_RANK got $line"';
    const { stdout } = await tccl(['run', '-n', '2', '--tty', '1', '--', 'sh', '-c', script], { input: 'typed\n' });
    expect(stdout.split('\n').sort()).toEqual(['', '1 got typed', '[0] 0 got ']);
  });
});
