/** Longest wait for the reason of a failed copy, milliseconds. */
const REASON_MS = 1000;

/** The reason why a device was lost, which may come after a copy has failed; undefined if none comes soon. */
export async function reasonOf(lost: Promise<string>): Promise<string | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), REASON_MS)));
  const reason = await Promise.race([lost, late]);
  clearTimeout(timer);
  return reason;
}
