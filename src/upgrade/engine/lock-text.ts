/**
 * What whoever looks at an upgrade has to know, as its ledger says: that it has locked the datastore, and which nodes it went
 * on without. Pure.
 */
import { counted } from "../../counted.ts";
import { identity } from "../../identity.ts";
import { fieldsIn } from "../object-fields.ts";
import { adviceOf, type Ledger, type StepState } from "./ledger.ts";
import { durationText, shortened } from "./wording.ts";

const LOCKING: ReadonlySet<StepState> = new Set(["running", "done", "rolling-back"]);

/** From the step "storage" to the step "unlock", or until the former is undone. On etcd there is no step "unlock". */
export function lockedByUpgrade({ steps }: Ledger): { readonly since: string } | undefined {
  const storage = steps.find(({ name }) => name === "storage");
  const unlock = steps.find(({ name }) => name === "unlock");
  if (storage === undefined || unlock === undefined) return undefined;
  if (!LOCKING.has(storage.state) || unlock.state === "done") return undefined;
  return { since: storage.startedAt ?? storage.endedAt ?? "" };
}

/** Empty if it is not locked. */
export function lockText(ledger: Ledger, now: Date): string {
  const locked = lockedByUpgrade(ledger);
  if (locked === undefined) return "";
  const seconds = (now.getTime() - Date.parse(locked.since)) / 1_000;
  const time = seconds >= 1 ? `, ${durationText(seconds)}` : "";
  return `The datastore is LOCKED since ${locked.since}${time}: no pod starts or ends until the upgrade goes on, or back; ${adviceOf(ledger)}`;
}

/** Nothing but the lock is written to the former storage after the unlock. */
export const FORMER_AGENT_IS_BEHIND =
  "a former agent that still runs there follows no change that is made after the unlock: it does not enforce new policies of " +
  `${identity.apiGroup}/v3, and has no routes to new blocks of addresses. Let no pod be scheduled there (kubectl cordon), and if it ` +
  "takes long, move its pods away (kubectl drain)";

/** Empty if the datastore is still locked, or all nodes are updated. */
export function leftNodesText({ steps, notes }: Ledger): string {
  const stateOf = (step: string) => steps.find(({ name }) => name === step)?.state;
  const nodes = Object.keys(fieldsIn(notes, "rollout", "left"));
  if (nodes.length === 0 || stateOf("unlock") !== "done" || stateOf("remaining-nodes") === "done") return "";
  const were = nodes.length === 1 ? "was" : "were";
  return `${counted(nodes.length, "node")} ${were} left by the update (${shortened(nodes).join(", ")}): ${FORMER_AGENT_IS_BEHIND}`;
}
