/** CNI: a runtime executes either GC, or any number of ADD and DEL. */
export class ExclusiveCalls {
  private readonly running = new Set<Promise<unknown>>();
  private turn: Promise<unknown> = Promise.resolve();

  /** Waits for the GC that was asked for before. */
  async shared<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    await this.turn;
    const answer = call();
    this.running.add(answer);
    return answer.finally(() => this.running.delete(answer));
  }

  /** Waits for all calls that have begun, and the others wait for it. */
  alone(call: () => Promise<void>): Promise<void> {
    const before = this.turn;
    const own = (async () => {
      await before;
      while (this.running.size > 0) await Promise.allSettled(this.running);
      await call();
    })();
    this.turn = own;
    return own;
  }
}
