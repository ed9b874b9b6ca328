/**
 * Decides what Envoy asks. Whatever goes wrong in a decision, the request is denied.
 */

import type { GrpcHandlers } from "../../grpc/server.ts";
import { formatAddress } from "../../ip/address.ts";
import type { RequestDecision } from "../judge/request-decision.ts";
import type { IncomingRequest } from "../judge/request-judge.ts";
import { decodeCheckRequest } from "./check-request.ts";
import { ALLOWED, DENIED } from "./check-response.ts";
import type { DecisionCounters } from "./decision-counters.ts";
import type { SidecarLog } from "./sidecar-log.ts";

export interface AuthorizerMeans {
  /** `revision`: 0 before there is anything to decide with. */
  readonly judge: { readonly revision: number; decide(request: IncomingRequest): RequestDecision };
  readonly counters: DecisionCounters;
  readonly log: SidecarLog;
  /** In milliseconds, by a monotonic clock. */
  elapsed(): number;
}

/** Of the mesh's minors with Envoy 1.14, which speaks v2, and of all later ones. The messages are the same. */
const METHODS = ["/envoy.service.auth.v3.Authorization/Check", "/envoy.service.auth.v2.Authorization/Check"];

export function authorizationHandlers(means: AuthorizerMeans): GrpcHandlers {
  const check = (message: Uint8Array) => respond(message, means);
  return Object.fromEntries(METHODS.map((method) => [method, check]));
}

function respond(message: Uint8Array, { judge, counters, log, elapsed }: AuthorizerMeans): Uint8Array {
  const begin = elapsed();
  try {
    const request = decodeCheckRequest(message);
    const decision = judge.decide(request);
    const isAllowed = decision.verdict === "allow";
    if (!isAllowed && log.isDebug) log.debug("Denied a request", fieldsOf(request, decision));
    counters.count(isAllowed ? "allow" : judge.revision === 0 ? "not synchronised" : "deny", elapsed() - begin);
    return isAllowed ? ALLOWED : DENIED;
  } catch (failure) {
    counters.count("error", elapsed() - begin);
    const reason = failure instanceof Error ? failure.message : String(failure);
    log.warnSeldom("Denied a request that cannot be decided", { reason });
    return DENIED;
  }
}

function fieldsOf({ source, principal, destinationPort, http }: IncomingRequest, decision: RequestDecision) {
  return {
    source: formatAddress(source),
    principal,
    port: destinationPort,
    method: http?.method,
    path: http && withoutQuery(http.path),
    reason: decision.reason,
    policy: decision.policy,
    rule: decision.rule,
    tier: decision.tier,
  };
}

/** A query may contain secrets. */
function withoutQuery(path: string): string {
  const [beforeQuery = ""] = path.split("?", 1);
  return beforeQuery;
}
