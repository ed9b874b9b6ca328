/**
 * May this request pass? Decides with the policies of one pod as the node agent sends them: all tiers, then the profiles,
 * as the kernel decides about the packets of a connection, and in addition by the identity of the client, method and path.
 *
 * The time of a decision hardly depends on the number of rules (rule-index.ts), and nothing is remembered of a request.
 */

import { type HttpAttributes, normalRequest } from "../../http/http-match.ts";
import { type Address, unmapAddress } from "../../ip/address.ts";
import { MalformedMessage } from "../protocol/malformed-message.ts";
import type { SidecarUpdate } from "../protocol/sidecar-state.ts";
import { firstState, type JudgeState, nextState } from "./judge-state.ts";
import { NO_OWN_ADDRESS, NO_PROFILE, NOT_SYNCHRONISED, type RequestDecision } from "./request-decision.ts";
import type { RequestFacts } from "./request-facts.ts";
import { NO_SETS, type SetNames } from "./set-memberships.ts";
import { parsePrincipal } from "./spiffe-identity.ts";

/** As the mesh's proxy describes it; a connection that is not HTTP has no `http`. */
export interface IncomingRequest {
  readonly source: Address;
  readonly sourcePort?: number;
  /** What the certificate of the client says: `spiffe://TRUST_DOMAIN/ns/NAMESPACE/sa/ACCOUNT`. Absent: no certificate. */
  readonly principal?: string;
  readonly destinationPort: number;
  readonly http?: HttpAttributes;
}

export class RequestJudge {
  private state: JudgeState | undefined;
  private appliedRevision = 0;

  /** `trustDomain`: of the identities that are accepted; `*` accepts every one. */
  constructor(private readonly trustDomain: string) {}

  /** Of the last update; 0 before the first, and after `clear`. */
  get revision(): number {
    return this.appliedRevision;
  }

  /**
   * Applies the whole update, or throws `MalformedMessage` and keeps the state. Revision 1 begins a new conversation:
   * it has the whole state, and nothing of the state before stays.
   */
  apply(update: SidecarUpdate): void {
    const { revision } = update;
    if (revision === 1) this.state = firstState(update);
    else if (this.state !== undefined && revision === this.appliedRevision + 1) {
      this.state = nextState(this.state, update);
    } else throw new MalformedMessage("revision", `${revision} does not follow ${this.appliedRevision}`);
    this.appliedRevision = revision;
  }

  /** Forgets everything: all requests are denied until the next whole state. */
  clear(): void {
    this.state = undefined;
    this.appliedRevision = 0;
  }

  decide(request: IncomingRequest): RequestDecision {
    const { state } = this;
    if (state === undefined) return NOT_SYNCHRONISED;
    const source = unmapAddress(request.source);
    const own = state.addresses.find(({ family }) => family === source.family);
    if (own === undefined) return NO_OWN_ADDRESS[source.family];
    return decide(state, this.factsOf(request, { source, destination: own }, state));
  }

  private factsOf(
    { sourcePort, destinationPort, principal, http }: IncomingRequest,
    { source, destination }: Readonly<Record<"source" | "destination", Address>>,
    { memberships }: JudgeState,
  ): RequestFacts {
    return {
      source: { address: source, port: sourcePort, sets: memberships.ofAddress(source, sourcePort) },
      destination: {
        address: destination,
        port: destinationPort,
        sets: memberships.ofAddress(destination, destinationPort),
      },
      identitySets: principal === undefined ? undefined : this.identitySets(principal, memberships),
      http: http === undefined ? undefined : normalRequest(http),
    };
  }

  private identitySets(principal: string, memberships: JudgeState["memberships"]): SetNames {
    const identity = parsePrincipal(principal, this.trustDomain);
    return identity === undefined ? NO_SETS : memberships.ofIdentity(`${identity.namespace}/${identity.account}`);
  }
}

function decide({ tiers, profiles }: JudgeState, request: RequestFacts): RequestDecision {
  for (const { index, outcome: ofTier } of tiers) {
    const outcome = index.first(request)?.outcome ?? ofTier;
    if (outcome !== "Pass") return outcome;
  }
  const ofProfile = profiles.first(request)?.outcome ?? "Pass";
  return ofProfile === "Pass" ? NO_PROFILE : ofProfile;
}
