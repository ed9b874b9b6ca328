/** One denied flow, and the draft of policies that allow it, from the resources of now: for the command and for the console. */
import type { Datastore } from "../../../datastore/datastore.ts";
import type { Unreadable } from "../../../datastore/read-each.ts";
import { PluginError } from "../../../errors.ts";
import { draftForFlow, type FlowDraft } from "../../../flows/draft/draft-for-flow.ts";
import type { FlowAnswer } from "../../../flows/flow-answer.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import {
  type NodeAgentConfiguration,
  type NodeAgentSettings,
  nodeAgentSettings,
} from "../../../model/node-agent-configuration.ts";
import { readPolicy } from "../../../policy/read-resources.ts";
import { quoted } from "../../../quote.ts";

/** The flow of an answer to a question for an explanation. `take`: whether the answer says what is missing. */
export async function flowIn(
  answers: AsyncIterable<FlowAnswer>,
  id: string,
  take: (answer: FlowAnswer) => boolean = () => false,
): Promise<FlowRecord> {
  for await (const answer of answers) if (!take(answer) && "explanation" in answer) return answer.explanation.flow;
  throw new PluginError("resource-missing", `Cannot draft a policy for flow ${quoted(id)}: no node knows it`, {
    details: "flows shows the IDs of those that are kept",
  });
}

export interface ReadFlowDraft {
  readonly draft: FlowDraft;
  readonly unreadable: readonly Unreadable[];
}

/** With the resources of now. */
export async function readFlowDraft(store: Datastore, flow: FlowRecord): Promise<ReadFlowDraft> {
  const { resources, configurations, unreadable } = await readPolicy(store, { withServices: true });
  return { draft: draftForFlow(flow, { resources, settingsOf: knownSettings(configurations) }), unreadable };
}

/** The judge asks for them at each packet. */
export function knownSettings(configurations: readonly NodeAgentConfiguration[]): (node: string) => NodeAgentSettings {
  const known = new Map<string, NodeAgentSettings>();
  return (node) => {
    const settings = known.get(node) ?? nodeAgentSettings(configurations, node);
    known.set(node, settings);
    return settings;
  };
}
