import { describe, expect, test } from "bun:test";
import { NO_RESOURCES } from "../../test/support/policy-changes.ts";
import { globalNetworkPolicy } from "../model/global-network-policy.ts";
import { networkPolicy } from "../model/network-policy.ts";
import { stagedGlobalNetworkPolicy } from "../model/staged-global-network-policy.ts";
import { stagedKubernetesNetworkPolicy } from "../model/staged-kubernetes-network-policy.ts";
import { stagedNetworkPolicy } from "../model/staged-network-policy.ts";
import { stagedSet } from "./staged-set.ts";

const TIER = { tier: "default" } as const;
const HOST = { doNotTrack: false, preDNAT: false, applyOnForward: false };
const policy = (namespace: string, name: string, selector: string) =>
  networkPolicy.make({ namespace, name, uid: `uid-${name}` }, { ...TIER, selector });
const staged = (namespace: string, name: string, spec: object = {}) =>
  stagedNetworkPolicy.make({ namespace, name, uid: "of-the-staged" }, { stagedAction: "Set", ...TIER, ...spec });

describe("stagedSet()", () => {
  const [web, other] = [policy("shop", "web", "old"), policy("blog", "web", "kept")];
  const lockdown = globalNetworkPolicy.make({ name: "web" }, { ...TIER, ...HOST });
  const resources = { ...NO_RESOURCES, networkPolicies: [web, other], globalNetworkPolicies: [lockdown] };

  test("puts a staged policy in place of the enforced one of its kind, name and namespace", () => {
    const { resources: after, isStaged } = stagedSet(resources, [staged("shop", "web", { selector: "new" })]);

    expect(after.networkPolicies).toEqual([
      other,
      networkPolicy.make({ namespace: "shop", name: "web" }, { ...TIER, selector: "new" }),
    ]);
    expect(after.globalNetworkPolicies).toEqual([lockdown]);
    expect(
      [web, other, lockdown].map(({ kind, metadata: { name, namespace } }) =>
        isStaged({ kind, name, ...(namespace === undefined ? {} : { namespace }) }),
      ),
    ).toEqual([true, false, false]);
  });

  test("leaves out what a staged policy deletes, and nothing if there is no such policy", () => {
    const deletions = [
      staged("shop", "web", { stagedAction: "Delete" }),
      staged("shop", "absent", { stagedAction: "Delete" }),
      stagedGlobalNetworkPolicy.make({ name: "web" }, { stagedAction: "Delete", ...TIER, ...HOST }),
    ];
    const { resources: after } = stagedSet(resources, deletions);

    expect([after.networkPolicies, after.globalNetworkPolicies]).toEqual([[other], []]);
  });

  test("converts a policy of the orchestrator's form as the enforced one is, with the default of its API", () => {
    const spec = { stagedAction: "Set" as const, podSelector: { matchLabels: { app: "web" } }, egress: [{}] };
    const own = stagedKubernetesNetworkPolicy.make({ namespace: "shop", name: "web" }, spec);
    const { resources: after } = stagedSet(resources, [own]);

    expect(after.networkPolicies.at(-1)).toMatchObject({
      metadata: { namespace: "shop", name: "knp.default.web" },
      spec: { types: ["Ingress", "Egress"], egress: [{ action: "Allow" }] },
    });
    expect(after.networkPolicies).toContain(web);
    const deletion = stagedKubernetesNetworkPolicy.make(own.metadata, { stagedAction: "Delete" });
    expect(stagedSet(after, [deletion]).resources.networkPolicies).toEqual([web, other]);
  });

  test("is the same resources if nothing is staged", () => {
    expect(stagedSet(resources, []).resources).toEqual(resources);
  });
});
