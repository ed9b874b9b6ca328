/** `policy draft --flow`: what allows one denied flow, beside the policies that there are. */
import type { FlowDraft } from "../../../flows/draft/draft-for-flow.ts";
import { policySpecOf } from "../../../flows/draft/draft-policies.ts";
import { draftText } from "../../../flows/draft/draft-text.ts";
import { withDatastore } from "../../datastore/open.ts";
import { withFlows } from "../../flows/flow-access.ts";
import { MissingNotes } from "../../flows/missing.ts";
import { reportUnreadable } from "../../ipam/report-unreadable.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Clock, ClusterAccess, DatastoreAccess } from "../../main/context.ts";
import { printable } from "../../terminal/printable.ts";
import { flowIn, readFlowDraft } from "./read-flow-draft.ts";

/** What chooses among many flows says nothing of one. */
const OF_MANY = ["namespace", "pod", "owner", "label", "since", "until", "aggregate"];

export async function draftOneFlow(context: DatastoreAccess & ClusterAccess & Clock, given: Given): Promise<ExitCode> {
  const id = given.values.get("flow") ?? "";
  const other = OF_MANY.find((name) => given.values.has(name));
  if (other !== undefined) throw new UsageError(`"--flow" and "--${other}" cannot be combined: it is about one flow`);
  if (given.switches.has("include-denied"))
    throw new UsageError('"--flow" is about a denied flow: leave out "--include-denied"');
  const missing = new MissingNotes(context);
  const flow = await withFlows(context, given, async (ask) =>
    flowIn(ask("explanation", { id }), id, (answer) => missing.take(answer)),
  );
  context.signal.throwIfAborted();
  return withDatastore(context, given, async (store) => {
    const { draft, unreadable } = await readFlowDraft(store, flow);
    const { policies, verdict, notes } = draft;
    if (wantsJson(given)) context.stdout(`${JSON.stringify(jsonOf(draft), undefined, 2)}\n`);
    else context.stdout(draftText({ policies, sets: [] }, given.switches.has("enforced") ? "enforced" : "staged"));
    context.stderr(`The judge: with the draft the flow is ${VERDICT_WORDS[verdict]}\n`);
    for (const note of notes) context.stderr(`Note: ${printable(note)}\n`);
    const isWhole = reportUnreadable(context, unreadable) === EXIT_OK;
    return isWhole && verdict === "allowed" ? EXIT_OK : EXIT_FAILED;
  });
}

const VERDICT_WORDS = {
  allowed: "allowed",
  denied: "still denied",
  depends: "maybe allowed: not everything is known that decides about it",
} as const;

function jsonOf({ policies, verdict, notes }: FlowDraft): object {
  return {
    policies: policies.map((policy) => ({
      ...{ name: policy.name, namespace: policy.namespace, comments: policy.comments, spec: policySpecOf(policy) },
    })),
    ...{ verdict, notes },
  };
}
