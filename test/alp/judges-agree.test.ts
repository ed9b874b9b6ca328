/**
 * The judge of a sidecar, fed step by step over the wire, and the slow judge, which reads the resources themselves, agree on
 * every request to the pods of random clusters: on the verdict, and on the rule that decides.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { RequestDecision } from "../../src/alp/judge/request-decision.ts";
import { RequestJudge } from "../../src/alp/judge/request-judge.ts";
import { decodeFromAgent } from "../../src/alp/protocol/decode-message.ts";
import { SidecarStates } from "../../src/alp/state/sidecar-states.ts";
import { differenceOf, type SentState } from "../../src/alp/state/state-difference.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { judgeRequest, type RequestJudgement } from "../support/judge-request.ts";
import { changesBetween, NO_RESOURCES } from "../support/policy-changes.ts";
import { proofSize } from "../support/proof-size.ts";
import { histories, LOCAL_NODE } from "../support/random-cluster.ts";
import {
  type RequestPolicies,
  randomRequests,
  requestPolicies,
  requestTo,
  trustDomains,
} from "../support/random-requests.ts";

const { runs, atLeast } = proofSize({
  everyDay: { runs: 40, atLeast: 2_000 },
  soak: { runs: 1_500, atLeast: 100_000 },
});
const PER_STATE = 20;
const STEPS = { minLength: 5, maxLength: 5 };

test("the sidecar and the slow judge decide the same, after any history of updates", () => {
  let asked = 0;
  fc.assert(
    fc.property(
      histories,
      trustDomains,
      fc.array(randomRequests, { minLength: PER_STATE, maxLength: PER_STATE }),
      fc.tuple(requestPolicies, requestPolicies),
      fc.array(fc.record({ policies: fc.constantFrom(0, 0, 1), reconnects: fc.boolean() }), STEPS),
      (history, trustDomain, questions, policies, steps) => {
        const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
        const states = new SidecarStates(compiler);
        const sidecars = new Map<string, FedJudge>();
        let before: PolicyResources = NO_RESOURCES;
        for (const [index, resources] of history.entries()) {
          const step = steps[index];
          // Policies and their sets that go may come back later.
          const cluster = withPolicies(resources, policies[step?.policies ?? 0]);
          compiler.update(changesBetween(before, cluster));
          before = cluster;
          const context = { resources: cluster, trustDomain };
          for (const endpoint of localEndpoints(cluster)) {
            const key = keyOf(endpoint);
            const known = step?.reconnects === true ? undefined : sidecars.get(key);
            const sidecar = known ?? new FedJudge(states, key, trustDomain);
            sidecars.set(key, sidecar);
            sidecar.feed();
            for (const question of questions) {
              const request = requestTo(endpoint, question);
              const slow = judgeRequest(request, endpoint, context);
              expect({ request, ...summaryOf(sidecar.judge.decide(request)) }).toEqual({ request, ...wordsOf(slow) });
              asked += 1;
            }
          }
        }
      },
    ),
    { numRuns: runs },
  );
  expect(asked).toBeGreaterThanOrEqual(atLeast);
});

function withPolicies(cluster: PolicyResources, more: RequestPolicies | undefined): PolicyResources {
  return {
    ...cluster,
    networkPolicies: [...cluster.networkPolicies, ...(more?.networkPolicies ?? [])],
    globalNetworkPolicies: [...cluster.globalNetworkPolicies, ...(more?.globalNetworkPolicies ?? [])],
  };
}

class FedJudge {
  readonly judge: RequestJudge;
  private sent: SentState | undefined;

  constructor(
    private readonly states: SidecarStates,
    private readonly key: string,
    trustDomain: string,
  ) {
    this.judge = new RequestJudge(trustDomain);
  }

  feed(): void {
    const state = this.states.stateOf(this.key);
    if (state === undefined) throw new Error(`no state of ${this.key}`);
    const difference = differenceOf(this.sent, state);
    if (difference === undefined) return;
    const message = decodeFromAgent(JSON.stringify(difference.update));
    if (message.type !== "update") throw new Error(`${message.type} is not an update`);
    this.judge.apply(message);
    this.sent = difference.sent;
  }
}

function localEndpoints({ endpoints }: PolicyResources): readonly WorkloadEndpoint[] {
  return endpoints.filter(({ spec }) => spec.node === LOCAL_NODE);
}

function keyOf({ metadata: { name, namespace = "" } }: WorkloadEndpoint): string {
  return ENDPOINT.key({ name, namespace });
}

interface Summary {
  readonly verdict: string;
  readonly policy: string | undefined;
  readonly rule: number | undefined;
  readonly tier: string | undefined;
}

function summaryOf({ verdict, policy, rule, tier }: RequestDecision): Summary {
  return { verdict, policy, rule, tier };
}

function wordsOf({ verdict, reason }: RequestJudgement): Summary {
  const nothing = { verdict, policy: undefined, rule: undefined, tier: undefined };
  if (reason.kind === "tier default") return { ...nothing, tier: reason.tier };
  if (reason.kind !== "rule") return nothing;
  const { name, namespace } = reason.policy.metadata;
  return { ...nothing, policy: namespace === undefined ? name : `${namespace}/${name}`, rule: reason.index };
}
