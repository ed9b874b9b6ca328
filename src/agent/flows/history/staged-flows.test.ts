import { describe, expect, test } from "bun:test";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { UNREADABLE } from "../../../flows/stored-resources.ts";
import { globalNetworkPolicy } from "../../../model/global-network-policy.ts";
import {
  ENDPOINT,
  GLOBAL_NETWORK_POLICY,
  NETWORK_POLICY,
  PROFILE,
  STAGED_NETWORK_POLICY,
} from "../../../model/kinds.ts";
import { networkPolicy } from "../../../model/network-policy.ts";
import { IS_NODE } from "../../../model/node-members.ts";
import { profile } from "../../../model/profile.ts";
import { stagedNetworkPolicy } from "../../../model/staged-network-policy.ts";
import { workloadEndpoint } from "../../../model/workload-endpoint.ts";
import type { SeenFlow, SeenResource } from "../flow-sink.ts";
import { StagedFlows } from "./staged-flows.ts";

const ALLOW = [{ action: "Allow" as const }];
const OPEN: SeenResource = {
  ...{ kind: "profiles", key: PROFILE.key({ name: "kns.shop" }) },
  value: profile.write(profile.make({ name: "kns.shop" }, { ingress: ALLOW, egress: ALLOW })),
};
const NAME = { namespace: "shop", name: "web" };
const HOST_OPTIONS = { doNotTrack: false, preDNAT: false, applyOnForward: false };
const PORTS = (port: number) => ({
  ...{ tier: "default", types: ["Ingress" as const] },
  ingress: [{ action: "Allow" as const, protocol: "TCP", destination: { ports: [port] } }],
});
const ENFORCED: SeenResource = {
  ...{ kind: "networkPolicies", key: NETWORK_POLICY.key(NAME) },
  value: networkPolicy.write(networkPolicy.make(NAME, PORTS(80))),
};

function staged(spec: object, name = NAME): SeenResource {
  const value = stagedNetworkPolicy.make(name, { stagedAction: "Set", tier: "default", ...spec });
  return {
    ...{ kind: "stagedNetworkPolicies", key: STAGED_NETWORK_POLICY.key(name) },
    value: stagedNetworkPolicy.write(value),
  };
}

function endpoint(name: string, address: string): string {
  const named = { namespace: "shop", name: `n-k8s-${name}-eth0` };
  const spec = { orchestrator: "k8s", node: "n", profiles: ["kns.shop"], ipNetworks: [`${address}/32`] };
  const labels = { "vendor.org/namespace": "shop" };
  return ENDPOINT.codec.write(workloadEndpoint.make({ ...named, labels }, { ...spec, workload: name }));
}

let count = 0;
function seen(port: number, more: Partial<FlowRecord> = {}): SeenFlow {
  count += 1;
  const pod = { kind: "pod", namespace: "shop", node: "n" } as const;
  const record: FlowRecord = {
    ...{ id: `n-${count}`, node: "n", family: 4, protocol: 6, direction: "both", verdict: "allowed", decisions: [] },
    source: { ...pod, name: "client", address: "10.0.0.1", port: 30_000 + count },
    destination: { ...pod, name: "web", address: "10.0.0.2", port },
    ...{ state: "open", start: 0, end: 0, sent: { packets: 1, bytes: 1 }, received: { packets: 1, bytes: 1 } },
    ...more,
  };
  return { record, source: endpoint("client", "10.0.0.1"), destination: endpoint("web", "10.0.0.2") };
}

/** What was told, and a clock that only the test moves. */
function site(...told: readonly SeenResource[]) {
  const clock = { now: 0, step: 0 };
  const all = [...told];
  let reads = 0;
  const flows = new StagedFlows({
    resources: () => {
      reads += 1;
      return all;
    },
    elapsed: () => (clock.now += clock.step),
  });
  const tell = (...resources: readonly SeenResource[]) => {
    all.push(...resources);
    flows.put(resources);
  };
  flows.put(told);
  const tried = (port: number, more?: Partial<FlowRecord>) => flows.judged(seen(port, more)).record.staged;
  return { flows, clock, tell, tried, reads: () => reads };
}

const DENIED = {
  verdict: "denied",
  decisions: [
    { point: "workload egress", verdict: "allow", rule: "profile egress" },
    { point: "workload ingress", verdict: "deny", rule: "tier default ingress default" },
  ],
} as const;

describe("StagedFlows", () => {
  test("reads nothing and says nothing while nothing is staged", () => {
    const { flows, tried, reads, tell } = site(OPEN, ENFORCED);
    const flow = seen(80);

    expect([flows.isIdle, flows.judged(flow), reads()]).toEqual([true, flow, 0]);
    tell(staged(PORTS(81)));
    expect([flows.isIdle, tried(80)?.verdict, reads()]).toEqual([false, "denied", 1]);
    tell({ kind: "stagedNetworkPolicies", key: STAGED_NETWORK_POLICY.key(NAME) });
    expect([flows.isIdle, tried(80), flows.notJudged]).toEqual([true, undefined, 0]);
  });

  test("says what would be denied and allowed, with the rules that would decide", () => {
    const { tried } = site(OPEN, ENFORCED, staged(PORTS(81)));

    expect(tried(80)).toEqual(DENIED as never);
    expect(tried(81)).toMatchObject({ verdict: "allowed", decisions: [{}, { rule: "shop/web ingress 0" }] });
  });

  test("says nothing of a flow that staged policies do not matter to", () => {
    const { flows, tried } = site(OPEN, ENFORCED, staged(PORTS(81), { namespace: "blog", name: "web" }));

    expect([tried(80), tried(81), flows.notJudged]).toEqual([undefined, undefined, 0]);
    const related = site(OPEN, staged(PORTS(81)));
    expect([related.tried(80, { relatedTo: "n-1" }), related.flows.notJudged]).toEqual([undefined, 0]);
  });

  test("tries a deletion", () => {
    const { tried } = site(OPEN, ENFORCED, staged({ stagedAction: "Delete" }));

    expect(tried(81)).toMatchObject({ verdict: "allowed", decisions: [{}, { rule: "profile ingress" }] });
  });

  test("follows the enforced policies and what is staged", () => {
    const { clock, tell, tried } = site(OPEN, ENFORCED, staged(PORTS(81)));
    expect(tried(80)?.verdict).toBe("denied");

    clock.now += 1_000;
    tell(staged(PORTS(80)));
    expect(tried(80)).toMatchObject({ verdict: "allowed", decisions: [{}, { rule: "shop/web ingress 0" }] });
    tell({ kind: "profiles", key: PROFILE.key({ name: "kns.shop" }) });
    expect(tried(80)).toMatchObject({ verdict: "denied", decisions: [{ rule: "no profile allows it, egress" }, {}] });
  });

  test("judges nothing by a part of what is staged", () => {
    const key = STAGED_NETWORK_POLICY.key({ namespace: "shop", name: "new" });
    const unreadable = { kind: "stagedNetworkPolicies", key, value: UNREADABLE };
    const { flows, tried } = site(OPEN, ENFORCED, staged(PORTS(81)), unreadable);

    expect([tried(80), flows.notJudged]).toEqual([undefined, 1]);
  });

  test("does not judge without what it is not told, and tries again what it could not read", () => {
    const rules = [{ action: "Allow" as const, destination: { selector: `${IS_NODE} && has(role)` } }];
    const nodes: SeenResource = {
      ...{ kind: "globalNetworkPolicies", key: GLOBAL_NETWORK_POLICY.key({ name: "nodes" }) },
      value: GLOBAL_NETWORK_POLICY.codec.write(
        globalNetworkPolicy.make({ name: "nodes" }, { ...PORTS(1), ...HOST_OPTIONS, egress: rules }),
      ),
    };
    const byNodes = site(OPEN, nodes, staged(PORTS(81)));
    expect([byNodes.tried(80), byNodes.flows.notJudged]).toEqual([undefined, 1]);

    let [isReadable, now] = [false, 0];
    const told = [OPEN, staged(PORTS(81))];
    const flows = new StagedFlows({ resources: () => (isReadable ? told : undefined), elapsed: () => now });
    flows.put(told);
    expect([flows.judged(seen(80)).record.staged, flows.notJudged]).toEqual([undefined, 1]);
    [isReadable, now] = [true, 1_000];
    expect(flows.judged(seen(80)).record.staged?.verdict).toBe("denied");
  });

  test("stops for the rest of a second when it has had its time, and counts what it has not judged", () => {
    const { flows, clock, tried } = site(OPEN, ENFORCED, staged(PORTS(81)));
    expect(tried(80)?.verdict).toBe("denied");
    clock.step = 60;
    const judged = Array.from({ length: 5 }, () => tried(80)?.verdict);
    clock.step = 0;

    expect(judged).toEqual(["denied", "denied", undefined, undefined, undefined]);
    expect(flows.notJudged).toBe(3);
    clock.now += 1_000;
    expect(tried(80)?.verdict).toBe("denied");
  });
});
