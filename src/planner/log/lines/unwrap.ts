/** Fields in which collectors keep the text of a line: Docker, Kubernetes, CloudWatch, Stackdriver, journald. */
const fields = ['log', 'message', 'msg', 'MESSAGE', '@message', 'textPayload', 'line', 'text'];

/**
 * The lines in a line of text: those of a collector's JSON record, or the pieces between the carriage returns of a progress bar.
 * Undefined for the text itself, which is the usual case.
 */
export function unwrapped(text: string): string[] | undefined {
  const inner = text.charCodeAt(0) === 123 /* { */ ? ofJson(text) : undefined;
  const plain = inner ?? text;
  if (!plain.includes('\r') && !plain.includes('\n')) return inner === undefined ? undefined : [inner];
  return plain.split(/[\r\n]+/).filter((piece) => piece !== '');
}

function ofJson(text: string): string | undefined {
  if (!text.trimEnd().endsWith('}')) return undefined;
  try {
    const record = JSON.parse(text) as Readonly<Record<string, unknown>>;
    for (const field of fields) {
      const value = record[field];
      if (typeof value === 'string') return value;
    }
  } catch {
    // Not JSON after all: an application's own line.
  }
  return undefined;
}
