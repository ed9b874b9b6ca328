import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { proofSize } from "../../../test/support/proof-size.ts";
import { configurations, histories, packets } from "../../../test/support/random-cluster.ts";
import { formatAddress } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { node } from "../../model/node.ts";
import { type NodeAgentConfiguration, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { IS_NODE } from "../../model/node-members.ts";
import { judgeInterface } from "../judge/host-judge.ts";
import { judge } from "../judge/judge.ts";
import type { Packet } from "../judge/packet.ts";
import type { AnyEndpoint, PolicyResources } from "../judge/resources.ts";
import type { End } from "./ends.ts";
import { hasPacket } from "./packet-cells.ts";
import { type EndClass, Reach, type Verdict } from "./reach.ts";

const RUNS = proofSize({ everyDay: 15, soak: 1_000 });
const some = fc.array(packets, { minLength: 30, maxLength: 30 });

/** As the judge says, which looks at all resources. */
function judged(
  packet: Packet,
  [source, destination]: readonly [AnyEndpoint | undefined, AnyEndpoint | undefined],
  resources: PolicyResources,
  configuration: NodeAgentConfiguration,
): Verdict {
  const at = (endpoint: AnyEndpoint | undefined, direction: "egress" | "ingress") => {
    if (endpoint === undefined) return "allow";
    if (endpoint.kind === "WorkloadEndpoint") return judge(packet, endpoint, direction, resources).verdict;
    const settings = nodeAgentSettings([configuration], endpoint.spec.node ?? "");
    return judgeInterface({ packet, endpoint, direction, isForwarded: false, settings }, resources).verdict;
  };
  return at(source, "egress") === "allow" && at(destination, "ingress") === "allow" ? "allowed" : "denied";
}

/** The ends that have the address: outside, the one that stands for it. */
function endsWith(address: Packet["source"], reach: Reach): readonly (readonly [EndClass, End])[] {
  const all = reach.classes.flatMap((each) => each.ends.map((end) => [each, end] as const));
  const own = all.filter(([, end]) => end.kind !== "outside" && end.text === formatAddress(address));
  if (own.length > 0) return own;
  const around = all.filter(
    ([
      ,
      {
        kind,
        network,
        address: { family },
      },
    ]) =>
      kind === "outside" && family === address.family && (network === undefined || prefixContains(network, address)),
  );
  const lengthOf = ([, { network }]: readonly [EndClass, End]) => network?.length ?? 0;
  return around.toSorted((left, right) => lengthOf(right) - lengthOf(left)).slice(0, 1);
}

/** Addresses of endpoints that cannot be compared: of one state alone. */
function isComparable(address: Packet["source"], states: readonly PolicyResources[], reach: Reach): boolean {
  const text = formatAddress(address);
  const isEnd = reach.classes.some(({ ends }) => ends.some((end) => end.kind !== "outside" && end.text === text));
  return isEnd || !JSON.stringify(states.map(({ endpoints }) => endpoints)).includes(`"${text}/`);
}

/** As a ClusterNetworkPolicy about nodes is converted. */
const NOT_TO_SSD = globalNetworkPolicy.make(
  { name: "not-to-ssd" },
  {
    ...{ tier: "default", order: 0, selector: "all()", types: ["Egress"] },
    ...{ doNotTrack: false, preDNAT: false, applyOnForward: false },
    egress: [
      { action: "Deny", protocol: "UDP", destination: { selector: `${IS_NODE} && pcno.disk == 'ssd'` } },
      { action: "Pass" },
    ],
  },
);

function withNodes(state: PolicyResources, isRestricted: boolean): PolicyResources {
  const nodes = [
    node.make({ name: "one", labels: { disk: "ssd" } }, { addresses: [{ address: "10.0.0.3" }] }),
    node.make({ name: "two" }, { addresses: [{ address: "fd00::2" }, { address: "10.0.1.1" }] }),
  ];
  const more = isRestricted ? [NOT_TO_SSD] : [];
  return { ...state, nodes, globalNetworkPolicies: [...state.globalNetworkPolicies, ...more] };
}

describe("Reach", () => {
  test("says of every packet between two ends what the judge says, before and after a change", () => {
    let [compared, changed] = [0, 0];
    fc.assert(
      fc.property(histories, configurations, some, (history, configuration, sent) => {
        const [first, second] = history;
        if (first === undefined || second === undefined) return;
        const settingsOf = (node: string) => nodeAgentSettings([configuration], node);
        const states = [first, second].map((state, index) => withNodes(state, index === 1));
        const [former = first, present = second] = states;
        const reach = new Reach({
          before: { resources: former, settingsOf },
          after: { resources: present, settingsOf },
        });
        const changes = [...reach.changes()];
        for (const packet of sent) {
          if (![packet.source, packet.destination].every((each) => isComparable(each, states, reach))) continue;
          for (const [sourceClass, source] of endsWith(packet.source, reach)) {
            for (const [destinationClass, destination] of endsWith(packet.destination, reach)) {
              if (source.text === destination.text) continue;
              if (source.kind === "outside" && destination.kind === "outside") continue;
              const isWithHost = source.kind === "host" || destination.kind === "host";
              if (isWithHost && source.node === destination.node) continue;
              const before = judged(packet, [source.before, destination.before], former, configuration);
              const after = judged(packet, [source.after, destination.after], present, configuration);
              const { cells, breaks } = reach.between(sourceClass, destinationClass);
              const around = cells.filter((cell) => hasPacket(cell, packet, breaks));
              expect(around.map((cell) => [cell.before, cell.after])).toEqual([[before, after]]);
              const lines = changes.filter(
                (pair) =>
                  pair.source === sourceClass &&
                  pair.destination === destinationClass &&
                  pair.cells.some((cell) => cell.before !== cell.after && hasPacket(cell, packet, pair.breaks)),
              );
              expect(lines.length).toBe(before === after ? 0 : 1);
              compared += 1;
              changed += lines.length;
            }
          }
        }
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(RUNS);
    expect(changed).toBeGreaterThan(RUNS / 20);
  });
});
