import type { MeasuredTable } from '../../planner/log/job/table.js';
import type { Planned } from '../planned.js';
import type { NamedText } from '../source.js';
import type { StudioState } from '../state.js';

/** All that a view can show something of. */
export interface PartInput {
  readonly made: Planned;
  readonly state: StudioState;
  /** Width of pictures on a phone; undefined on larger screens. */
  readonly width: number | undefined;
  /** The file that is shown, and the one that it is compared with. */
  readonly file: NamedText | undefined;
  readonly against: NamedText | undefined;
  readonly tables: readonly MeasuredTable[];
  /** Plans another state, whose file is `file`; undefined for a file without a machine. */
  readonly plan: (state: StudioState, file: NamedText | undefined) => Planned | undefined;
}
