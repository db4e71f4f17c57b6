import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface FieldProps {
  readonly value: string | number;
  /** Takes what the user typed, after Enter or on leaving the field. */
  readonly enter: (input: HTMLInputElement) => void;
  /** Other attributes of the input. */
  readonly others: JSX.IntrinsicElements['input'];
}

/**
 * Shows a value of the state, which the user can change. What is being typed stays while the page is drawn anew, as by an answer
 * of the worker: the field takes the value only when that changes, and after something was entered.
 */
export function Field({ value, enter, others }: FieldProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const [entered, setEntered] = useState(0);
  useLayoutEffect(() => {
    if (input.current !== null) input.current.value = String(value);
  }, [value, entered]);
  return (
    <input
      {...others}
      ref={input}
      onChange={({ currentTarget }) => {
        enter(currentTarget);
        setEntered(entered + 1);
      }}
    />
  );
}
