/** States are a shape and a word, then a colour. */
import type { State } from "../../api/health.ts";
import { Icon } from "./icons.tsx";

const WORDS: Readonly<Record<State, string>> = { ok: "ok", warning: "warning", failed: "failed", unknown: "unknown" };

export function StateMark({ state, words = WORDS[state] }: { readonly state: State; readonly words?: string }) {
  return (
    <span class={`mark mark-${state}`}>
      <Icon name={state} />
      {words}
    </span>
  );
}

export type Verdict = "allowed" | "denied" | "unknown" | "depends";

export function VerdictMark({ verdict }: { readonly verdict: Verdict }) {
  return (
    <span class={`mark mark-${verdict === "depends" ? "unknown" : verdict}`}>
      <Icon name={verdict === "depends" ? "unknown" : verdict} />
      {verdict}
    </span>
  );
}
