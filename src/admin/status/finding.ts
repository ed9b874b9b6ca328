/** Something that is wrong, and what to do about it: of a cluster, a host or a sidecar. */
export interface StatusFinding {
  readonly state: "failed" | "warning";
  /** `node worker-1`, `component controllers` … */
  readonly subject: string;
  readonly message: string;
  readonly remedy?: string;
}

export function isFailure({ state }: StatusFinding): boolean {
  return state === "failed";
}
