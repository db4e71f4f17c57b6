import { expect } from 'vitest';
import { InputError } from '../../../../src/errors.js';

/** The error of an action, which must be an InputError. */
export function inputError(action: () => unknown): InputError {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return error as InputError;
  }
  throw new Error('nothing was thrown');
}
