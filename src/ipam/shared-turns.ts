/** For the node agent: its own calls wait in a queue, and only the first of them waits for the lock. */
import { LOCK_TIMEOUT_MILLISECONDS, type Turn, type TurnMeans, workWithLock } from "./host-turn.ts";

export class SharedTurns {
  /** The last call in the queue of each path: resolved when it has released the lock. */
  private readonly queues = new Map<string, Promise<void>>();

  open(path: string, means: TurnMeans): Turn {
    return async (work) => {
      const start = means.now().getTime();
      const over = Promise.withResolvers<void>();
      const before = this.queues.get(path);
      this.queues.set(path, over.promise);
      const leaveQueue = () => {
        over.resolve();
        if (this.queues.get(path) === over.promise) this.queues.delete(path);
      };
      try {
        if (before) await Promise.race([before, means.wait(LOCK_TIMEOUT_MILLISECONDS)]);
        return await workWithLock(path, { ...means, start }, (leave) =>
          work(() => {
            leave();
            leaveQueue();
          }),
        );
      } finally {
        leaveQueue();
      }
    };
  }
}
