/**
 * What the console knows of its cluster or host, always as one reader may see it. Two implementations: a cluster asked with the
 * reader's own token, and the host that `vendorctl console` runs on. All throw `PluginError`; `signal` ends every wait.
 */
import { PluginError } from "../errors.ts";
import type { FlowAnswer } from "../flows/flow-answer.ts";
import type { FlowQuery } from "../flows/flow-query.ts";
import type { AddressDetail, PoolMapAnswer, Pools } from "./api/addresses.ts";
import type { Health } from "./api/health.ts";
import type { AppliedDraft, PolicyDraft } from "./api/policy-draft.ts";

export interface ConsoleSource {
  /** Whose eyes: the user name. */
  readonly user: string;
  /**
   * What the reader may see, asked for again: a text that is compared with the one before. If it differs, open streams end, and the
   * page opens them again with the rights of now. Throws `TokenRefused` if the token is not valid any more, which ends the session.
   */
  rights(signal: AbortSignal): Promise<string>;
  health(signal: AbortSignal): Promise<Health>;
  /** The oldest first; with `follow` until `signal` fires. */
  flows(query: FlowQuery, follow: boolean, signal: AbortSignal): AsyncIterable<FlowAnswer>;
  explanation(id: string, signal: AbortSignal): AsyncIterable<FlowAnswer>;
  pools(signal: AbortSignal): Promise<Pools>;
  poolMap(pool: string, signal: AbortSignal): AsyncIterable<PoolMapAnswer>;
  address(address: string, signal: AbortSignal): Promise<AddressDetail>;
  draft(flowId: string, signal: AbortSignal): Promise<PolicyDraft>;
  /** With the reader's own rights. Throws `resource-changed` if the draft is not that of the flow any more. */
  applyDraft(flowId: string, draft: PolicyDraft, signal: AbortSignal): Promise<AppliedDraft>;
  close(): Promise<void>;
}

/** The token is not that of a reader, or not any more. So is a failure with the status 401 of the API server (`statusOfRefusal()`). */
export class TokenRefused extends PluginError {
  constructor(message: string, more: { details?: string; cause?: unknown } = {}) {
    super("api-unavailable", message, more);
  }
}

/** How a reader becomes a source. Throws `TokenRefused`; no message contains the token. */
export type OpenSource = (token: string, signal: AbortSignal) => Promise<ConsoleSource>;
