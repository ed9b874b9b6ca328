/** Steps done so far that can be undone, last in, first out. */
export interface Undoable {
  /** For the log, after "Cannot": `release the addresses`. */
  readonly action: string;
  readonly undo: () => void | Promise<void>;
}

export class UndoList {
  readonly #done: Undoable[] = [];

  add(action: string, undo: Undoable["undo"]): void {
    this.#done.push({ action, undo });
  }

  /** Undoes every step, even if some fail; returns the failures. */
  async run(): Promise<readonly string[]> {
    const failures: string[] = [];
    for (const { action, undo } of this.#done.toReversed()) {
      try {
        await undo();
      } catch (failure) {
        failures.push(`Cannot ${action}: ${failure instanceof Error ? failure.message : String(failure)}`);
      }
    }
    return failures;
  }
}
