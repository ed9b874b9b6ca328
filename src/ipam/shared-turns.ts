/** For an agent that stays: its own calls wait in a line for their turn, and only the first of them for the lock. */
import { PATIENCE_MILLISECONDS, type Turn, type TurnMeans, workWithLock } from "./host-turn.ts";

export class SharedTurns {
  /** The last call in line for each path: resolved when its turn is over. */
  private readonly lines = new Map<string, Promise<void>>();

  open(path: string, means: TurnMeans): Turn {
    return async (work) => {
      const start = means.now().getTime();
      const over = Promise.withResolvers<void>();
      const before = this.lines.get(path);
      this.lines.set(path, over.promise);
      const leaveLine = () => {
        over.resolve();
        if (this.lines.get(path) === over.promise) this.lines.delete(path);
      };
      try {
        if (before) await Promise.race([before, means.wait(PATIENCE_MILLISECONDS)]);
        return await workWithLock(path, { ...means, start }, (leave) =>
          work(() => {
            leave();
            leaveLine();
          }),
        );
      } finally {
        leaveLine();
      }
    };
  }
}
