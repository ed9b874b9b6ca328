import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { proofSize } from "../../test/support/proof-size.ts";
import { clusters, configurations, packets } from "../../test/support/random-cluster.ts";
import { recordedFlow } from "../../test/support/recorded-flow.ts";
import { identity } from "../identity.ts";
import { networkPolicy } from "../model/network-policy.ts";
import { nodeAgentSettings } from "../model/node-agent-configuration.ts";
import { profile } from "../model/profile.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../model/workload-endpoint.ts";
import type { Explanation } from "../policy/judge/explain.ts";
import type { PolicyResources } from "../policy/judge/resources.ts";
import type { FlowRecord } from "./flow-record.ts";
import { FlowReplay, flowReplay } from "./replay-flows.ts";

const NAMESPACE_LABEL = `${identity.labelPrefix}namespace`;

function outcome({ verdict, sides }: Explanation) {
  const words = { allow: "allowed", deny: "denied", depends: "depends" } as const;
  return { verdict: words[verdict], deciders: sides.map(({ decidedBy }) => decidedBy) };
}

const RUNS = proofSize({ everyDay: 100, soak: 10_000 });
const some = fc.array(packets, { minLength: 20, maxLength: 20 });

describe("flowReplay()", () => {
  test("decides as it was decided when the flow was recorded, if the resources are the same", () => {
    fc.assert(
      fc.property(clusters, configurations, some, (resources, configuration, sent) => {
        const settingsOf = (node: string) => nodeAgentSettings([configuration], node);
        const decide = flowReplay(resources, { settingsOf });
        for (const packet of sent) {
          const { flow, said } = recordedFlow(packet, resources, configuration);
          const { verdict, sides } = decide(flow);
          expect({ verdict, deciders: sides.map(({ decidedBy }) => decidedBy) }).toEqual(outcome(said));
        }
      }),
      { numRuns: RUNS },
    );
  });

  test("judges a pod that is gone as it was recorded", () => {
    let judged = 0;
    fc.assert(
      fc.property(clusters, configurations, some, (all, configuration, sent) => {
        // What a record does not contain of a pod, it cannot be judged by.
        const endpoints = all.endpoints.map(plain);
        const resources = { ...all, containerLabels: [], endpoints };
        for (const packet of sent) {
          const { flow, said, source, settingsOf } = recordedFlow(packet, resources, configuration);
          const { workload } = source;
          if (workload === undefined || !isAlone(workload, endpoints)) continue;
          judged += 1;
          const left = endpoints.filter((each) => each !== workload);
          const { verdict, notes } = flowReplay({ ...resources, endpoints: left }, { settingsOf })(flow);
          expect([verdict, notes.length]).toEqual([outcome(said).verdict, 1]);
        }
      }),
      { numRuns: RUNS },
    );
    expect(judged).toBeGreaterThan(50);
  });

  test("judges a pod by the endpoint that comes with the flow, if the resources do not contain it", () => {
    const replay = new FlowReplay({ ...SHOP, endpoints: [] }, { settingsOf: (node) => nodeAgentSettings([], node) });

    expect(replay.decide(TO_WEB, () => [pod("web-1", "10.0.0.1")])).toMatchObject({
      ...{ verdict: "allowed", decidedBy: { kind: "NetworkPolicy", name: "web", rule: 0 }, notes: [] },
    });
    expect(replay.remembered).toBe(1);
  });

  test("takes ports and service account of a gone pod from one with the same labels", () => {
    const [settingsOf, sibling] = [(node: string) => nodeAgentSettings([], node), pod("web-2", "10.0.0.2")];
    const resources: PolicyResources = { ...SHOP, endpoints: [sibling] };
    const replay = flowReplay(resources, { settingsOf });

    expect(replay(TO_WEB)).toMatchObject({
      ...{ verdict: "allowed", decidedBy: { kind: "NetworkPolicy", name: "web", rule: 0 } },
      notes: ["shop/web-1 is gone: judged as shop/web-2, which has the same labels"],
    });
    expect(flowReplay({ ...SHOP, endpoints: [] }, { settingsOf })(TO_WEB)).toMatchObject({
      ...{ verdict: "denied", decidedBy: { kind: "Tier", name: "default" } },
      notes: ["shop/web-1 is gone: judged with its recorded labels and the profile of its namespace"],
    });
    // Another pod has its address now.
    const other = pod("other", "10.0.0.1", { app: "other" });
    expect(flowReplay({ ...SHOP, endpoints: [sibling, other] }, { settingsOf })(TO_WEB).verdict).toBe("allowed");
  });

  test("says what cannot be judged", () => {
    const replay = flowReplay(SHOP, { settingsOf: (node) => nodeAgentSettings([], node) });
    const { source } = TO_WEB;

    for (const flow of [
      { ...TO_WEB, relatedTo: "one-7" },
      { ...TO_WEB, source: { ...source, kind: "hidden" as const } },
      { ...TO_WEB, source: { ...source, kind: "container" as const, name: "gone" } },
      { ...TO_WEB, source: { ...source, address: "?" } },
    ]) {
      expect(replay(flow)).toMatchObject({ verdict: "not judged", sides: [] });
    }
  });
});

function plain(endpoint: WorkloadEndpoint): WorkloadEndpoint {
  const { namespace = "", labels = {} } = endpoint.metadata;
  const kept = Object.entries(labels).filter(([name]) => !name.startsWith(identity.labelPrefix));
  const own = { ...Object.fromEntries(kept), [NAMESPACE_LABEL]: namespace };
  return workloadEndpoint.make(
    {
      ...{ name: endpoint.metadata.name, namespace },
      labels: { ...own, [`${identity.labelPrefix}orchestrator`]: "k8s" },
    },
    { ...endpoint.spec, orchestrator: "k8s", profiles: [`kns.${namespace}`], ports: [] },
  );
}

/** Neither its addresses nor its labels are those of another pod. */
function isAlone(endpoint: WorkloadEndpoint, all: readonly WorkloadEndpoint[]): boolean {
  const labels = JSON.stringify(Object.entries(endpoint.metadata.labels ?? {}).sort());
  return all
    .filter((other) => other !== endpoint)
    .every(
      ({ metadata, spec }) =>
        JSON.stringify(Object.entries(metadata.labels ?? {}).sort()) !== labels &&
        spec.ipNetworks?.every((text) => endpoint.spec.ipNetworks?.includes(text) !== true),
    );
}

function pod(name: string, address: string, labels: Readonly<Record<string, string>> = { app: "web" }) {
  return workloadEndpoint.make(
    {
      name: `one-k8s-${name.replaceAll("-", "--")}-eth0`,
      namespace: "shop",
      labels: { ...labels, [NAMESPACE_LABEL]: "shop" },
    },
    {
      ...{ orchestrator: "k8s", node: "one", pod: name, endpoint: "eth0", ipNetworks: [`${address}/32`] },
      ...{ profiles: ["kns.shop"], ports: [{ name: "http", protocol: "TCP", port: 8080 }] },
    },
  );
}

const SHOP: PolicyResources = {
  ...{ endpoints: [], containerLabels: [], hostEndpoints: [], globalNetworkPolicies: [], tiers: [] },
  ...{ networkSets: [], globalNetworkSets: [] },
  profiles: [profile.make({ name: "kns.shop" }, { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] })],
  networkPolicies: [
    networkPolicy.make(
      { name: "web", namespace: "shop" },
      {
        ...{ tier: "default", selector: "app == 'web'", types: ["Ingress"] },
        ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: ["http"] } }],
      },
    ),
  ],
};

const TO_WEB: FlowRecord = {
  ...{ id: "1", node: "one", family: 4, protocol: 6, direction: "ingress", verdict: "allowed", state: "ended" },
  source: { kind: "outside", address: "192.0.2.1", port: 40_000 },
  destination: {
    ...{ kind: "pod", namespace: "shop", name: "web-1", node: "one", labels: { app: "web" } },
    ...{ address: "10.0.0.1", port: 8080 },
  },
  ...{ decisions: [], start: 1, end: 2, sent: { packets: 1, bytes: 1 }, received: { packets: 1, bytes: 1 } },
};
