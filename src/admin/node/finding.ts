/** One thing that packets of pods depend on. */
export interface Finding {
  readonly check: string;
  readonly state: "ok" | "warning" | "failed";
  readonly message: string;
  /** What to run. */
  readonly remedy?: string;
}
