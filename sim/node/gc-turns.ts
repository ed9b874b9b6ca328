/**
 * CNI lets a runtime call GC only while no ADD and no DEL is in progress, and begin none of them before it has ended: the
 * list of those to keep would be old.
 */
export class GcTurns {
  private readonly calls = new Set<Promise<unknown>>();
  private collecting: Promise<unknown> | undefined;

  /** An ADD or a DEL, beside others. */
  async beside<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    while (this.collecting !== undefined) await this.collecting;
    const call = work();
    this.calls.add(call);
    try {
      return await call;
    } finally {
      this.calls.delete(call);
    }
  }

  /** A GC. */
  async alone<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    while (this.collecting !== undefined) await this.collecting;
    const collecting = Promise.all(this.calls).then(work);
    this.collecting = collecting;
    try {
      return await collecting;
    } finally {
      if (this.collecting === collecting) this.collecting = undefined;
    }
  }
}
