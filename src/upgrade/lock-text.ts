/** Whether an upgrade has locked the datastore, as its ledger says, and the line that says so to whoever looks at it. Pure. */
import { durationText } from "./duration-text.ts";
import { adviceOf, type Ledger, type StepState } from "./ledger.ts";

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
