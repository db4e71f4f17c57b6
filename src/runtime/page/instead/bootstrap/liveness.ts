import { SystemError } from '../../../../errors.js';

// A page has no hosts that could vanish.
export class Unanswered extends SystemError {}
export const ownFaultOf = (): string | undefined => undefined;
export const lookAtHosts = (): void => undefined;
