/** Logs when policy begins or ceases to be enforced on this host: an operator must see which of both it is. */
export interface Enforcement {
  /** Whether there is a policy table. */
  readonly isEnforced: boolean;
  readonly policies: number;
  readonly workloads: number;
}

export function enforcementLog(log: (message: string) => void): (now: Enforcement) => void {
  let wasEnforced: boolean | undefined;
  return ({ isEnforced, policies, workloads }) => {
    if (isEnforced === wasEnforced) return;
    wasEnforced = isEnforced;
    log(
      isEnforced
        ? `Network policy: enforced (policies: ${policies}, workloads of this node: ${workloads})`
        : "Network policy: there is none, and no host endpoint of this node; all packets of workloads pass",
    );
  };
}
