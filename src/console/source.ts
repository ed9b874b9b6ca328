/**
 * What the console knows of its cluster or host, always as one reader may see it. Two implementations: a cluster asked with the
 * reader's own token, and the host that `vendorctl console` runs on. All throw `PluginError`; `signal` ends every wait.
 */
import type { FlowAnswer } from "../flows/flow-answer.ts";
import type { FlowQuery } from "../flows/flow-query.ts";
import type { AddressDetail, PoolMapAnswer, Pools } from "./api/addresses.ts";
import type { Health } from "./api/health.ts";
import type { AppliedDraft, PolicyDraft } from "./api/policy-draft.ts";

export interface ConsoleSource {
  /** Whose eyes: the user name. Throws if the token is not valid any more. */
  readonly user: string;
  health(signal: AbortSignal): Promise<Health>;
  /** The oldest first; with `follow` until `signal` fires. */
  flows(query: FlowQuery, follow: boolean, signal: AbortSignal): AsyncIterable<FlowAnswer>;
  explanation(id: string, signal: AbortSignal): AsyncIterable<FlowAnswer>;
  pools(signal: AbortSignal): Promise<Pools>;
  poolMap(pool: string, signal: AbortSignal): AsyncIterable<PoolMapAnswer>;
  address(address: string, signal: AbortSignal): Promise<AddressDetail>;
  draft(flowId: string, signal: AbortSignal): Promise<PolicyDraft>;
  /** With the reader's own rights. Throws `resource-conflict` if the draft is not that of the flow any more. */
  applyDraft(flowId: string, draft: PolicyDraft, signal: AbortSignal): Promise<AppliedDraft>;
  close(): Promise<void>;
}

/** How a reader becomes a source. */
export type OpenSource = (token: string, signal: AbortSignal) => Promise<ConsoleSource>;
