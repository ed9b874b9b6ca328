/** What the judge decides about a request. */
export interface RequestDecision {
  readonly verdict: "allow" | "deny";
  /** In words, for logs: `rule 2 of policy "shop/web" allows it`. */
  readonly reason: string;
  /** The policy whose rule decided: `NAMESPACE/NAME`, or `NAME` of a global policy. */
  readonly policy?: string;
  /** Its index in `spec.ingress`. */
  readonly rule?: number;
  /** The tier whose default decided, because none of its rules matches. */
  readonly tier?: string;
}

export const NOT_SYNCHRONISED: RequestDecision = {
  verdict: "deny",
  reason: "not synchronised: there are no policies of the node agent",
};

export const NO_PROFILE: RequestDecision = { verdict: "deny", reason: "no profile allows it" };

export const NO_OWN_ADDRESS: Readonly<Record<4 | 6, RequestDecision>> = {
  4: { verdict: "deny", reason: "the pod has no IPv4 address" },
  6: { verdict: "deny", reason: "the pod has no IPv6 address" },
};

export function decisionOfTier(tier: string): RequestDecision {
  return { verdict: "deny", reason: `no rule of tier "${tier}" matches`, tier };
}

export function decisionOfRule(action: "Allow" | "Deny", rule: number, policy: string): RequestDecision {
  return { ...decided(action, `rule ${rule} of policy "${policy}"`), policy, rule };
}

export function decisionOfProfileRule(action: "Allow" | "Deny", rule: number): RequestDecision {
  return decided(action, `rule ${rule} of a profile`);
}

function decided(action: "Allow" | "Deny", what: string): RequestDecision {
  return action === "Allow"
    ? { verdict: "allow", reason: `${what} allows it` }
    : { verdict: "deny", reason: `${what} denies it` };
}
