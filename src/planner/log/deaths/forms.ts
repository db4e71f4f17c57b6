/** A way in which a launcher, shell, container or framework reports the end of a process. */
export interface DeathForm {
  /** Lower-case texts; only lines that contain one of them are matched. */
  readonly needles: readonly string[];
  /** Named groups: `rank` (or a list), `host`, `pid`, `code`, `signal` (number, name or words). */
  readonly pattern: RegExp;
  /** A helper of a rank ended, not the rank itself: `DataLoader worker`. */
  readonly helper?: string;
  /** The launcher itself got the signal: from a scheduler, a user or a closed terminal. */
  readonly isLauncher?: boolean;
}

const SIGNAL_WORDS = String.raw`Killed|Segmentation fault|Bus error|Aborted|Illegal instruction|Floating point exception|Terminated|Hangup`;

/** Forms in the order in which they are tried. */
export const deathForms: readonly DeathForm[] = [
  // torchrun's agent, and mp.spawn
  {
    needles: ['(exitcode: '],
    pattern: /failed \(exitcode: (?<code>-?\d{1,3})\) local_rank: (?<local>\d{1,7}) \(pid: (?<pid>\d{1,9})\)/,
  },
  {
    needles: ['terminated with signal', 'terminated with exit code'],
    pattern: /[Pp]rocess (?<rank>\d{1,7}) terminated with (?:signal (?<signal>SIG\w{2,8})|exit code (?<code>-?\d{1,3}))/,
  },
  { needles: [' death signal'], pattern: /Received (?:Signals\.)?(?<signal>SIG\w{2,8}|\d{1,2}) death signal/, isLauncher: true },
  { needles: ['got signal: '], pattern: /Process \d{1,9} got signal: (?<signal>\d{1,2})/, isLauncher: true },
  // mpirun and prterun, MPICH's hydra, Intel MPI
  {
    needles: ['exited on signal'],
    pattern:
      /process rank (?<rank>\d{1,7}) with PID (?<pid>\d{1,9}) on node (?<host>\S{1,255}) exited on signal (?<signal>\d{1,2})/,
  },
  { needles: ['killed by signal: '], pattern: /KILLED BY SIGNAL: (?<signal>\d{1,2})/ },
  {
    needles: ['terminated with the exit string'],
    pattern: /TERMINATED WITH THE EXIT STRING: [\w ]{2,40}\(signal (?<signal>\d{1,2})\)/,
  },
  { needles: ['process received signal', '] signal: '], pattern: /^\[[^\]]{1,100}\] Signal: [\w ]{3,40} \((?<signal>\d{1,2})\)/ },
  {
    needles: ['mpi_abort was invoked', 'application called mpi_abort'],
    pattern:
      /MPI_ABORT was invoked on rank (?<rank>\d{1,7})|application called MPI_Abort\([^)]{0,60}\) - process (?<rank2>\d{1,7})/,
  },
  // Slurm
  {
    needles: ['srun: error: '],
    pattern: new RegExp(
      String.raw`srun: error: (?<host>[\w.\[\],-]{1,255}): tasks? (?<rank>[\d,-]{1,200}): (?:Exited with exit code (?<code>\d{1,3})|(?<signal>${SIGNAL_WORDS}))`,
    ),
  },
  // DeepSpeed, Horovod
  { needles: ['exits with return code'], pattern: /exits with return code = (?<code>-?\d{1,3})/ },
  { needles: ['exit with status code'], pattern: /Process (?<rank>\d{1,7}) exit with status code (?<code>-?\d{1,3})/ },
  // programs that start the training themselves, and Python's subprocess
  {
    needles: ['error code -', 'return code -', 'exit code -'],
    pattern: /^\W{0,3}(?:ERROR:? {0,2})?(?:error|return|exit) code:? (?<code>-(?:[4-9]|1[0-5]))\.?\s{0,4}$/i,
  },
  { needles: ['died with <signals.'], pattern: /died with <Signals\.(?<signal>SIG\w{2,8}): \d{1,2}>/ },
  // helpers of a rank
  {
    needles: ['dataloader worker'],
    pattern:
      /DataLoader worker \(pid(?:\(s\))? (?<pid>\d{1,9})[^)]{0,100}\) (?:is killed by signal: (?<signal>[\w ]{3,30})|exited unexpectedly(?: with exit code (?<code>-?\d{1,3}))?)/,
    helper: 'DataLoader worker',
  },
  // servers: vLLM, SGLang, TGI
  {
    needles: ['scheduler is dead', 'scheduler died'],
    pattern: /Rank (?<rank>\d{1,7}) scheduler (?:is dead|died)[^\n]{0,120}?(?:[Ee]xit ?code: (?<code>-?\d{1,3}))?$/,
  },
  {
    needles: ['signaled to shutdown with signal'],
    pattern: /signaled to shutdown with signal (?<signal>\d{1,2})(?: rank=(?<rank>\d{1,7}))?/,
  },
  // debuggers, shells, systemd, containers
  { needles: ['caught signal '], pattern: /Caught signal (?<signal>\d{1,2}) \(/ },
  { needles: [' received at time='], pattern: /\*\*\* (?<signal>SIG\w{2,8}) received at time=/ },
  {
    needles: ['received signal sig'],
    pattern: /^(?:Thread|Program|Process)\b[^\n]{0,120} received signal (?<signal>SIG\w{2,8})/,
  },
  {
    needles: ['main process exited'],
    pattern: /Main process exited, code=(?:killed|dumped|exited), status=\d{1,3}\/(?<signal>[A-Z]{2,8})/,
  },
  { needles: [': line '], pattern: new RegExp(String.raw`: line \d{1,6}: {1,10}(?<pid>\d{1,9}) (?<signal>${SIGNAL_WORDS})\b`) },
  { needles: ['(core dumped)'], pattern: new RegExp(String.raw`\b(?<signal>${SIGNAL_WORDS}) ?\(core dumped\)`) },
  {
    needles: ['killed', 'segmentation fault', 'bus error', 'aborted'],
    pattern: new RegExp(String.raw`(?:^|[\]:>] )\s{0,4}(?<signal>${SIGNAL_WORDS})\.?\s{0,4}$`),
  },
  {
    needles: ['fatal python error'],
    pattern: /Fatal Python error: (?<signal>Segmentation fault|Bus error|Aborted|Illegal instruction|Floating-point exception)/,
  },
  {
    needles: ['exit code', 'exitcode', 'exit_code', 'exited with code'],
    pattern:
      /\b(?:[Ee]xited with (?:exit )?code|[Ee]xit ?[Cc]ode|exit_code|exitCode)['"]?(?: was)? ?[:=]? {0,12}(?<code>-?[1-9]\d{0,2})\b/,
  },
];
