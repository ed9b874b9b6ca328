/** The draft that allows one denied flow, as one reader may see the resources that decide about it, and how it is applied. */

import type { Clock } from "../../admin/main/context.ts";
import { flowIn, readFlowDraft } from "../../admin/policy/draft/read-flow-draft.ts";
import { PluginError } from "../../errors.ts";
import { type DraftedPolicy, enforcedPolicyOf } from "../../flows/draft/draft-policies.ts";
import { draftText } from "../../flows/draft/draft-text.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { identity } from "../../identity.ts";
import { NETWORK_POLICY } from "../../model/kinds.ts";
import { quoted } from "../../quote.ts";
import type { AppliedDraft, PolicyDraft } from "../api/policy-draft.ts";
import type { SeenRecords } from "./visible-store.ts";

export interface DraftMeans {
  readonly id: string;
  /** The answer to a question for the explanation of the flow. */
  readonly answers: AsyncIterable<FlowAnswer>;
  readonly store: SeenRecords;
}

interface Drafted {
  readonly shown: PolicyDraft;
  readonly policies: readonly DraftedPolicy[];
}

export async function readPolicyDraft(means: DraftMeans): Promise<PolicyDraft> {
  return (await draftOf(means)).shown;
}

async function draftOf({ id, answers, store }: DraftMeans): Promise<Drafted> {
  const { draft, unreadable } = await readFlowDraft(store, await flowIn(answers, id));
  const { policies, verdict, notes } = draft;
  const hidden = store.hidden ?? [];
  const { adminTool } = identity;
  return {
    policies,
    shown: {
      yaml: draftText({ policies, sets: [] }, "enforced"),
      notes: [
        ...notes,
        ...unreadable.map(({ failure }) => `cannot be read, and counts as written: ${failure.message}`),
        ...(hidden.length === 0 ? [] : [`what you may not list may decide otherwise: ${hidden.join(", ")}`]),
      ],
      verdict: hidden.length > 0 && verdict === "allowed" ? "depends" : verdict,
      command: `${adminTool} policy draft --flow ${shellWord(id)} --enforced | ${adminTool} apply -f -`,
    },
  };
}

/** Only the draft that was shown: the flow, the policies or the rights may have changed since. */
export async function applyPolicyDraft(
  means: DraftMeans,
  shown: PolicyDraft,
  { now, uuid }: Pick<Clock, "now" | "uuid">,
): Promise<AppliedDraft> {
  const { policies, shown: present } = await draftOf(means);
  if (present.yaml !== shown.yaml)
    throw new PluginError(
      "resource-changed",
      `Cannot apply the draft for flow ${quoted(means.id)}: it is not that of the flow any more`,
      { details: "policies or workloads have changed: draft it again, and look at it" },
    );
  const applied: AppliedDraft["applied"] = [];
  for (const drafted of policies) {
    const { name, namespace } = drafted;
    const policy = enforcedPolicyOf(drafted);
    const metadata = { ...policy.metadata, uid: uuid(), creationTimestamp: now().toISOString() };
    const [key, value] = [NETWORK_POLICY.key({ name, namespace }), NETWORK_POLICY.codec.write({ ...policy, metadata })];
    const written = await means.store.commit([{ kind: "create", key, value }]);
    if (!written.ok)
      throw new PluginError(
        "resource-changed",
        `Cannot create NetworkPolicy "${namespace}/${name}": it exists by now`,
        {
          details: "draft it again: the new one has another name",
        },
      );
    applied.push({ title: `NetworkPolicy ${namespace}/${name}`, outcome: "created" });
  }
  return { applied };
}

function shellWord(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
