/** The compiled table and the judges agree on every packet, for random clusters. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { interpret } from "../../test/support/interpret/interpret.ts";
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
import { identity } from "../identity.ts";
import { addressBits, formatAddress } from "../ip/address.ts";
import { hostNumber } from "../linux/nftables/value.ts";
import { isFinished } from "../model/finished-pods.ts";
import { nodeAgentSettings } from "../model/node-agent-configuration.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { PolicyCompiler } from "./compile/compiler.ts";
import { judgeAtHost, type Passage } from "./judge/host-judge.ts";
import { judge } from "./judge/judge.ts";
import type { Packet } from "./judge/packet.ts";
import type { PolicyResources } from "./judge/resources.ts";

const RUNS = proofSize({ everyDay: 400, soak: 20_000 });

test("the compiled table and the judge agree on every packet of a workload", () => {
  fc.assert(
    fc.property(clusters, fc.array(packets, { minLength: 20, maxLength: 20 }), (cluster, someBytes) => {
      const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true, dropGroup: 7 });
      compiler.update(changesBetween(NO_RESOURCES, { ...cluster, hostEndpoints: [] }));
      compiler.setSidecars(sidecarsOf(cluster));
      for (const endpoint of cluster.endpoints.filter(({ spec }) => spec.node === LOCAL_NODE)) {
        const { interfaceName = "" } = endpoint.spec;
        for (const packet of someBytes) {
          const bytes = packetBytes(packet);
          const ingress = interpret(compiler.table, { hook: "forward", oifname: interfaceName, packet: bytes });
          const egress = interpret(compiler.table, { hook: "forward", iifname: interfaceName, packet: bytes });
          const seen = [ingress, egress].map(({ verdict }) => (verdict === "accept" ? "allow" : "deny"));
          const resources = { ...cluster, hostEndpoints: [] };
          const judged = (["ingress", "egress"] as const).map((each) => judge(packet, endpoint, each, resources));
          expect(seen).toEqual(judged.map(({ verdict }) => verdict));
        }
      }
    }),
    { numRuns: RUNS },
  );
});

test("what IPVS sends on for a workload is judged as if it had been forwarded, by the source address of its sender", () => {
  fc.assert(
    fc.property(clusters, fc.array(packets, { minLength: 20, maxLength: 20 }), (cluster, some) => {
      const resources = { ...cluster, hostEndpoints: [] };
      const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true, dropGroup: 7 });
      compiler.update(changesBetween(NO_RESOURCES, resources));
      compiler.setSidecars(sidecarsOf(cluster));
      compiler.setIpvs(true);
      const local = cluster.endpoints.filter(({ spec }) => spec.node === LOCAL_NODE);
      const oneEach = local.filter((each) => hasItsAddress(each, cluster));
      for (const packet of some) {
        const bytes = packetBytes(packet);
        const through = (oifname: string, mark: number) =>
          interpret(
            compiler.table,
            { hook: "output", oifname, packet: bytes },
            { ...unmarked(), mark: hostNumber(mark) },
          ).verdict;
        for (const { spec } of local) {
          const oifname = spec.interfaceName ?? "";
          const forwarded = interpret(compiler.table, { hook: "forward", oifname, packet: bytes });
          expect(through(oifname, ARRIVED_BIT)).toBe(forwarded.verdict);
          // What this host itself sends.
          expect(through(oifname, 0)).toBe("accept");
        }
        const sender = oneEach.find(({ spec }) => spec.ipNetworks?.includes(single(packet)));
        const iifname = sender?.spec.interfaceName;
        const sent =
          iifname === undefined
            ? "drop"
            : interpret(compiler.table, { hook: "forward", iifname, packet: bytes }).verdict;
        const isShared = local.some((each) => each !== sender && each.spec.ipNetworks?.includes(single(packet)));
        if (!isShared) expect(through("eth0", ARRIVED_BIT | FROM_WORKLOAD_BIT)).toBe(sent);
      }
    }),
    { numRuns: RUNS },
  );
});

const ARRIVED_BIT = 0x0200_0000;
const FROM_WORKLOAD_BIT = 0x0400_0000;

function single({ source }: Packet): string {
  return `${formatAddress(source)}/${addressBits(source.family)}`;
}

/** Otherwise another endpoint has the interface. */
function hasItsAddress({ spec, status, metadata }: WorkloadEndpoint, cluster: PolicyResources): boolean {
  const claims = cluster.endpoints.filter(
    (each) => each.spec.node === spec.node && each.spec.interfaceName === spec.interfaceName,
  );
  return claims.length === 1 && claims[0]?.metadata.name === metadata.name && !isFinished({ status });
}

test("the compiled table and the judges agree on every packet that passes interfaces of the host", () => {
  fc.assert(
    fc.property(
      clusters,
      configurations,
      hostInterfaces,
      fc.array(fc.tuple(packets, passages), { minLength: 40, maxLength: 40 }),
      (cluster, configuration, interfaces, questions) => {
        const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true, dropGroup: 7 });
        compiler.setHostInterfaces(interfaces);
        compiler.setSidecars(sidecarsOf(cluster));
        compiler.update(changesBetween(NO_RESOURCES, cluster, configuration));
        const settings = nodeAgentSettings([configuration], LOCAL_NODE);
        for (const [packet, passage] of questions) {
          const seen = interpretPassage(compiler.table, passage, packetBytes(packet));
          const atHost = judgeAtHost(packet, passage, { node: LOCAL_NODE, interfaces, settings }, cluster);
          const isAllowed =
            atHost.verdict === "allow" &&
            areWorkloadsAllowed(packet, passage, cluster, settings.defaultEndpointToHostAction);
          expect({ packet, passage, verdict: seen.verdict }).toEqual({
            packet,
            passage,
            verdict: isAllowed ? "accept" : "drop",
          });
        }
      },
    ),
    { numRuns: RUNS },
  );
});

const ND_TYPE = 135;

/** The policies of the workloads at both ends, as far as they are on this node. */
function areWorkloadsAllowed(
  packet: Packet,
  passage: Passage,
  cluster: PolicyResources,
  toHost: "Accept" | "Drop" | "Return",
): boolean {
  const isFromWorkload = "from" in passage && passage.from.startsWith(identity.interfacePrefix);
  const isToWorkload = passage.kind === "forwarded" && passage.to.startsWith(identity.interfacePrefix);
  if (passage.kind === "to host" && isFromWorkload) {
    if (packet.protocol === 58 && packet.icmp?.type === ND_TYPE) return true;
    if (toHost === "Drop") return false;
  }
  return (
    (!isFromWorkload || isAllowedAt(passage.from, "egress", packet, cluster)) &&
    (!isToWorkload || isAllowedAt(passage.to, "ingress", packet, cluster))
  );
}

function isAllowedAt(
  interfaceName: string,
  direction: "ingress" | "egress",
  packet: Packet,
  cluster: PolicyResources,
): boolean {
  const endpoint = cluster.endpoints.find(
    ({ spec }) => spec.node === LOCAL_NODE && spec.interfaceName === interfaceName,
  );
  return endpoint !== undefined && judge(packet, endpoint, direction, cluster).verdict === "allow";
}
