/** The labels and reports that the rules of the policy table write, for random clusters. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { interpretPassage } from "../../test/support/interpret/interpret-passage.ts";
import { packetBytes } from "../../test/support/interpret/packet-bytes.ts";
import { unmarked } from "../../test/support/interpret/packet-marks.ts";
import { changesBetween, NO_RESOURCES, sidecarsOf } from "../../test/support/policy-changes.ts";
import { proofSize } from "../../test/support/proof-size.ts";
import {
  clusters,
  configurations,
  hostInterfaces,
  LOCAL_NODE,
  packets,
  passages,
} from "../../test/support/random-cluster.ts";
import { type NodeAgentConfiguration, nodeAgentConfiguration } from "../model/node-agent-configuration.ts";
import { PolicyCompiler } from "../policy/compile/compiler.ts";
import { POINTS } from "../policy/point.ts";
import type { DesiredTable } from "../policy/table/desired-table.ts";
import { labelOf, readLabel } from "./rule-label.ts";
import { RuleNumbers } from "./rule-numbers.ts";

const RUNS = proofSize({ everyDay: 200, soak: 10_000 });
const FLOW_GROUP = 8;
/** Of packets that belong to no flow. */
const TUNNELS = /between nodes$|of node agents$/;
const PRE_DNAT = "host_pre_dnat_first";

/** The configuration with flows, or without. */
function withFlows(configuration: NodeAgentConfiguration, flows: "Enabled" | "Disabled"): NodeAgentConfiguration {
  return nodeAgentConfiguration.make({ name: configuration.metadata.name }, { ...configuration.spec, flows });
}

function compilerWith(numbers: RuleNumbers): PolicyCompiler {
  return new PolicyCompiler({
    ...{ node: LOCAL_NODE, hasServices: true, dropGroup: 7 },
    flows: {
      deniedGroup: FLOW_GROUP,
      labelOf: (point, comment) => labelOf(point, numbers.find(comment) ?? numbers.add(comment) ?? 0),
    },
  });
}

test("the label of an accepted connection names the rules that decided, and the verdict is the same without flows", () => {
  fc.assert(
    fc.property(
      clusters,
      configurations,
      fc.tuple(hostInterfaces, fc.boolean()),
      fc.array(fc.tuple(packets, passages), { minLength: 40, maxLength: 40 }),
      (cluster, configuration, [interfaces, hasIpvs], questions) => {
        const numbers = new RuleNumbers([]);
        const tables = (["Enabled", "Disabled"] as const).map((flows) => {
          const compiler = compilerWith(numbers);
          compiler.setIpvs(hasIpvs);
          compiler.setHostInterfaces(interfaces);
          compiler.setSidecars(sidecarsOf(cluster));
          compiler.update(changesBetween(NO_RESOURCES, cluster, withFlows(configuration, flows)));
          return compiler.table;
        });
        const [observed, plain] = tables;
        if (observed === undefined || plain === undefined) throw new Error("two tables");
        const commentOf = new Map(numbers.all);
        for (const [packet, passage] of questions) {
          const bytes = packetBytes(packet);
          const marks = unmarked();
          const seen = interpretPassage(observed, passage, bytes, marks);
          const without = interpretPassage(plain, passage, bytes);
          expect(seen.verdict).toBe(without.verdict);
          if (seen.verdict === "drop" || marks.state === "untracked") continue;
          const labels = POINTS.flatMap((point) => {
            const field = readLabel(marks.label, point);
            // Several rules of one point would be a mix.
            expect(field.kind).not.toBe("several");
            return field.kind === "rule" ? [commentOf.get(field.number)] : [];
          });
          const deciders = (seen.deciders ?? [])
            .filter(({ comment, chain }) => !TUNNELS.test(comment) && observed.chains.get(chain)?.point !== undefined)
            // The next stage decides about these.
            .filter(({ chain }) => chain !== PRE_DNAT)
            .map(({ comment }) => comment);
          expect(new Set(labels)).toEqual(new Set(deciders));
        }
      },
    ),
    { numRuns: RUNS },
  );
});

test("switched off again the table is what it is without flows, and on again it has the same labels", () => {
  fc.assert(
    fc.property(clusters, configurations, (cluster, configuration) => {
      const numbers = new RuleNumbers([]);
      const compiler = compilerWith(numbers);
      compiler.update(changesBetween(NO_RESOURCES, cluster, withFlows(configuration, "Disabled")));
      const switchTo = (flows: "Enabled" | "Disabled") => {
        const value = withFlows(configuration, flows);
        compiler.update({
          ...changesBetween(NO_RESOURCES, NO_RESOURCES),
          configurations: [{ kind: "put", key: "configuration", value, previous: undefined }],
        });
        return contentOf(compiler.table);
      };
      const before = switchTo("Disabled");
      const on = switchTo("Enabled");

      expect(before.text).not.toContain(`"group":${FLOW_GROUP}`);
      expect(switchTo("Disabled")).toEqual(before);
      expect(switchTo("Enabled")).toEqual(on);
    }),
    { numRuns: RUNS },
  );
});

test("an agent that starts again writes the same labels, whatever it compiles first", () => {
  fc.assert(
    fc.property(clusters, configurations, (cluster, configuration) => {
      const enabled = withFlows(configuration, "Enabled");
      const first = new RuleNumbers([]);
      const before = compilerWith(first);
      before.update(changesBetween(NO_RESOURCES, cluster, enabled));
      const after = compilerWith(new RuleNumbers(first.all));
      // Without the configuration at first, and with the policies in another order.
      after.update(
        changesBetween(NO_RESOURCES, {
          ...cluster,
          networkPolicies: cluster.networkPolicies.toReversed(),
          globalNetworkPolicies: cluster.globalNetworkPolicies.toReversed(),
        }),
      );
      after.update(changesBetween(NO_RESOURCES, NO_RESOURCES, enabled));

      expect(contentOf(after.table).chains).toEqual(contentOf(before.table).chains);
    }),
    { numRuns: RUNS },
  );
});

/** What the kernel gets of the chains. */
function contentOf({ chains }: DesiredTable) {
  const content = Array.from(chains.values(), ({ chain, rules }) => ({
    ...{ chain, rules: rules.map(({ expressions, comment }) => ({ expressions, comment })) },
  })).toSorted((left, right) => left.chain.name.localeCompare(right.chain.name));
  const text = JSON.stringify(content, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
  return { chains: content, text };
}
