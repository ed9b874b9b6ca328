/** The judge's reasoning: each side, the policies in their order, and what each of them said. */
import type { FlowExplanation } from "../../../flows/flow-answer.ts";
import { Icon } from "../parts/icons.tsx";
import { type Verdict, VerdictMark } from "../parts/state-mark.tsx";

const VERDICTS: Readonly<Record<string, Verdict>> = { allowed: "allowed", denied: "denied" };

export function Reasoning({ explanation: { sides = [], missing } }: { readonly explanation: FlowExplanation }) {
  return (
    <div class="reasoning">
      {sides.map(({ direction, of, verdict, reason, policies }) => (
        <div class="side" key={`${direction} ${of}`}>
          <p class="side-head">
            <strong>
              {direction === "egress" ? "Egress" : "Ingress"} of {of}
            </strong>
            <VerdictMark verdict={VERDICTS[verdict] ?? "unknown"} />
          </p>
          <p>{reason}</p>
          {policies.length > 0 && (
            <ol class="judged">
              {policies.map((policy) => (
                <li key={policy.title}>
                  <span>
                    {policy.title} <span class="muted">tier {policy.tier}</span>
                  </span>
                  <span class="muted">{policy.outcome}</span>
                </li>
              ))}
            </ol>
          )}
        </div>
      ))}
      {missing.map((note) => (
        <p class="notice notice-plain" key={note}>
          <Icon name="warning" />
          {note}
        </p>
      ))}
    </div>
  );
}
