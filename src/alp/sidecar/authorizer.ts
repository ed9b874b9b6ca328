/**
 * Decides what Envoy asks. Whatever goes wrong in a decision, the request is denied.
 */

import { delimited, message as encoded, varint } from "../../grpc/protobuf.ts";
import type { GrpcHandlers } from "../../grpc/server.ts";
import { formatAddress } from "../../ip/address.ts";
import type { RequestDecision } from "../judge/request-decision.ts";
import type { IncomingRequest } from "../judge/request-judge.ts";
import { decodeCheckRequest } from "./check-request.ts";
import type { DecisionCounters } from "./decision-counters.ts";
import type { SidecarLog } from "./sidecar-log.ts";

export interface AuthorizerOptions {
  /** `revision`: 0 before there is anything to decide with. */
  readonly judge: { readonly revision: number; decide(request: IncomingRequest): RequestDecision };
  readonly counters: DecisionCounters;
  readonly log: SidecarLog;
  /** In milliseconds, by a monotonic clock. */
  elapsed(): number;
}

/** Of the mesh's minors with Envoy 1.14, which speaks v2, and of all later ones. The messages are the same. */
const METHODS = ["/envoy.service.auth.v3.Authorization/Check", "/envoy.service.auth.v2.Authorization/Check"];

const PERMISSION_DENIED = 7n;
const FORBIDDEN = 403n;
/** For the client, which must not learn the names of policies. */
const BODY = "Denied by network policy\n";

const status = (code: bigint) => delimited(1, varint(1, code));

/** `CheckResponse` of Envoy's external authorization, v2 and v3 alike: status OK. */
const ALLOWED: Uint8Array = delimited(1, "");

/** The HTTP response is not used for connections that are not HTTP: Envoy closes them. */
const DENIED: Uint8Array = encoded(
  status(PERMISSION_DENIED),
  delimited(2, encoded(status(FORBIDDEN), delimited(3, BODY))),
);

export function authorizationHandlers(options: AuthorizerOptions): GrpcHandlers {
  const check = (message: Uint8Array) => respond(message, options);
  return Object.fromEntries(METHODS.map((method) => [method, check]));
}

function respond(message: Uint8Array, { judge, counters, log, elapsed }: AuthorizerOptions): Uint8Array {
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
