/** How many decisions were made, and how long they took. */
export type Verdict = "allow" | "deny" | "not synchronised" | "error";

export class DecisionCounters {
  private readonly decided: Record<Verdict, number> = { allow: 0, deny: 0, "not synchronised": 0, error: 0 };
  private total = 0;

  count(verdict: Verdict, milliseconds: number): void {
    this.decided[verdict] += 1;
    this.total += milliseconds;
  }

  get decisions(): Readonly<Record<Verdict, number>> {
    return this.decided;
  }

  get milliseconds(): number {
    return this.total;
  }
}
