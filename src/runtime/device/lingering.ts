/** Number of postponed actions to check at a time: if one rank is slow, the others may have thousands. */
const LOOKS = 8;

/** Actions for later, when others no longer use some memory. */
export class Lingering {
  #waiting: { readonly isTime: () => boolean; readonly action: () => void }[] = [];

  /** Runs `action` once `isTime` returns true, which is checked whenever memory is allocated, left or inspected. */
  when(isTime: () => boolean, action: () => void): void {
    if (isTime()) action();
    else this.#waiting.push({ isTime, action });
  }

  /** Runs the actions that are due. */
  settle(): void {
    this.#run(this.#waiting.splice(0));
  }

  /** The same for some of the actions, in turn. */
  settleSome(): void {
    this.#run(this.#waiting.splice(0, LOOKS));
  }

  #run(actions: readonly { readonly isTime: () => boolean; readonly action: () => void }[]): void {
    for (const { isTime, action } of actions) this.when(isTime, action);
  }
}
