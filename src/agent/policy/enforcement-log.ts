/** Logs when policy begins or ceases to be enforced on this host: an operator must see which of both it is. */
export interface Enforcement {
  /** Whether there is a policy table. */
  readonly isEnforced: boolean;
  /** Nothing is enforced, but former rules stay. */
  readonly isKept?: boolean;
  readonly policies: number;
  readonly workloads: number;
}

export function enforcementLog(log: (message: string) => void): (now: Enforcement) => void {
  let before: State | undefined;
  return (enforcement) => {
    const state = stateOf(enforcement);
    if (state === before) return;
    before = state;
    log(textOf(state, enforcement));
  };
}

type State = "enforced" | "kept" | "none";

function stateOf({ isEnforced, isKept = false }: Enforcement): State {
  if (isEnforced) return "enforced";
  return isKept ? "kept" : "none";
}

function textOf(state: State, { policies, workloads }: Enforcement): string {
  switch (state) {
    case "enforced":
      return `Network policy: enforced (policies: ${policies}, workloads of this node: ${workloads})`;
    case "kept":
      return "Network policy: there is none, but containers run here that the datastore does not know: rules of before stay";
    case "none":
      return "Network policy: there is none, and no host endpoint of this node; all packets of workloads pass";
  }
}
