/** A table that was changed step by step equals one that is compiled from the final state at once. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { ImitatedTable } from "../../../test/support/imitated-table.ts";
import { changesBetween, NO_RESOURCES, sidecarsOf } from "../../../test/support/policy-changes.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import {
  clusters,
  configurations,
  histories,
  hostInterfaces,
  LOCAL_NODE,
} from "../../../test/support/random-cluster.ts";
import { identity } from "../../identity.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { tier } from "../../model/tier.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { PolicyResources } from "../judge/resources.ts";
import type { DesiredTable } from "../table/desired-table.ts";
import { tableBatches, wholeTable } from "../table/table-changes.ts";
import { PolicyCompiler } from "./compiler.ts";

const TABLE = { family: "inet", name: "policy" } as const;
const RUNS = proofSize({ everyDay: 200, soak: 5_000 });

const situations = fc
  .tuple(histories, fc.array(fc.tuple(hostInterfaces, configurations, fc.boolean()), { minLength: 5, maxLength: 5 }))
  .map(([history, settings]) => {
    const [first] = settings;
    return history.map((cluster, index) => {
      const [interfaces, configuration, hasIpvs = false] = settings[index] ?? first ?? [];
      return { cluster, interfaces, configuration, hasIpvs };
    });
  });

test("after any changes, the table and what the batches wrote equal a table of the final state", () => {
  fc.assert(
    fc.property(situations, (history) => {
      const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true, dropGroup: 7 });
      const kernel = new ImitatedTable();
      kernel.apply(wholeTable(TABLE, compiler.table, ""));
      compiler.takeDelta();
      const fresh = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true, dropGroup: 7 });
      let before: PolicyResources = NO_RESOURCES;
      for (const { cluster, interfaces, configuration, hasIpvs } of history) {
        compiler.update(changesBetween(before, cluster, configuration));
        compiler.setHostInterfaces(interfaces ?? []);
        compiler.setSidecars(sidecarsOf(cluster));
        compiler.setIpvs(hasIpvs);
        for (const batch of tableBatches(TABLE, compiler.table, compiler.takeDelta())) kernel.apply(batch);
        before = cluster;
      }
      const last = history.at(-1);
      fresh.setHostInterfaces(last?.interfaces ?? []);
      fresh.setSidecars(sidecarsOf(before));
      fresh.setIpvs(last?.hasIpvs ?? false);
      fresh.update(changesBetween(NO_RESOURCES, before, last?.configuration));
      const wanted = contentOf(fresh.table);
      expect(contentOf(compiler.table)).toEqual(wanted);
      expect(contentOf(kernel)).toEqual(wanted);
    }),
    { numRuns: RUNS },
  );
});

test("nothing is left of policies whose endpoints are gone", () => {
  fc.assert(
    fc.property(clusters, (cluster) => {
      const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true, dropGroup: 7 });
      const empty = contentOf(compiler.table);
      compiler.update(changesBetween(NO_RESOURCES, cluster));
      compiler.setSidecars(sidecarsOf(cluster));
      compiler.update(changesBetween(cluster, { ...cluster, endpoints: [], hostEndpoints: [] }));
      expect(contentOf(compiler.table)).toEqual(empty);
    }),
    { numRuns: RUNS },
  );
});

test("the end of the tier that a policy has moved to is the one that denies", () => {
  const endpoint = workloadEndpoint.make(
    { name: "here-k8s-a-eth0", namespace: "red" },
    { node: "here", pod: "a", orchestrator: "k8s", endpoint: "eth0", interfaceName: `${identity.interfacePrefix}1` },
  );
  const inTier = (name: string): PolicyResources => ({
    ...{
      ...NO_RESOURCES,
      endpoints: [endpoint],
      tiers: [tier.make({ name: "first" }, { order: 10, defaultAction: "Deny" })],
    },
    globalNetworkPolicies: [
      globalNetworkPolicy.make(
        { name: "moved" },
        {
          ...{ tier: name, selector: "all()", types: ["Egress"] },
          ...{ doNotTrack: false, preDNAT: false, applyOnForward: false },
        },
      ),
    ],
  });
  const compiler = new PolicyCompiler({ node: "here" });
  compiler.update(changesBetween(NO_RESOURCES, inTier("default")));
  compiler.update(changesBetween(inTier("default"), inTier("first")));

  const comments = [...compiler.table.chains.values()].flatMap(({ rules }) => rules.map(({ comment }) => comment));
  expect(comments.filter((comment) => comment?.startsWith("tier "))).toEqual(["tier first egress default"]);
});

interface Content {
  readonly chains: unknown;
  readonly sets: unknown;
}

function contentOf({ chains, sets }: DesiredTable): Content {
  return {
    chains: Object.fromEntries(
      Array.from(chains, ([name, { rules }]) => [
        name,
        rules.map(({ expressions, comment }) => ({ expressions, comment })),
      ]),
    ),
    sets: Object.fromEntries(Array.from(sets, ([name, { elements }]) => [name, elementTexts([...elements.values()])])),
  };
}

function elementTexts(elements: readonly NftElement[]): readonly string[] {
  return elements
    .map(({ key, interval, data }) => `${key.toHex()} ${interval ?? ""} ${JSON.stringify(data)}`)
    .toSorted();
}
