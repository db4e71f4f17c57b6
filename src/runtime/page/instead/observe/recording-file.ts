import { InvalidUsageError } from '../../../../errors.js';

export class RecordingFile {
  constructor(path: string) {
    throw new InvalidUsageError('UNSUPPORTED', `TCCL_RECORD=${path} needs Node.js: a page has no files`);
  }

  /** Never called: there is none. */
  readonly write = (): void => undefined;
  readonly close = this.write;
}
