/** Values of TCCL_DEBUG; each includes those before it. */
export const debugLevels = ['NONE', 'VERSION', 'WARN', 'INFO', 'TRACE'] as const;
export type DebugLevel = (typeof debugLevels)[number];

/** Values of TCCL_DEBUG_SUBSYS, as in NCCL. */
export const debugSubsystems = ['INIT', 'COLL', 'GRAPH', 'TUNING', 'NET', 'ENV'] as const;
export type DebugSubsystem = (typeof debugSubsystems)[number];

export interface DebugSettings {
  readonly level: DebugLevel;
  readonly subsystems: ReadonlySet<DebugSubsystem>;
  /**
   * TCCL_DEBUG_FILE: `%h` stands for the host's name, `%p` for the process, `%%` for `%`. Default: standard output, as in NCCL.
   */
  readonly file: string | undefined;
}
