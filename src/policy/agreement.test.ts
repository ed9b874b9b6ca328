/** The compiled table and the judge agree on every packet, for random clusters. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { changesBetween, NO_RESOURCES } from "../../test/support/policy-changes.ts";
import { proofSize } from "../../test/support/proof-size.ts";
import { clusters, LOCAL_NODE, packets } from "../../test/support/random-cluster.ts";
import { PolicyCompiler } from "./compile/compiler.ts";
import { interpret } from "./interpret/interpret.ts";
import { packetBytes } from "./interpret/packet-bytes.ts";
import { judge } from "./judge/judge.ts";

test("the compiled table and the judge agree on every packet", () => {
  fc.assert(
    fc.property(clusters, fc.array(packets, { minLength: 20, maxLength: 20 }), (cluster, someBytes) => {
      const compiler = new PolicyCompiler({ node: LOCAL_NODE });
      compiler.update(changesBetween(NO_RESOURCES, cluster));
      for (const endpoint of cluster.endpoints.filter(({ spec }) => spec.node === LOCAL_NODE)) {
        const { interfaceName = "" } = endpoint.spec;
        for (const packet of someBytes) {
          const bytes = packetBytes(packet);
          const ingress = interpret(compiler.table, { hook: "forward", oifname: interfaceName, packet: bytes });
          const egress = interpret(compiler.table, { hook: "forward", iifname: interfaceName, packet: bytes });
          const seen = [ingress, egress].map(({ verdict }) => (verdict === "accept" ? "allow" : "deny"));
          const judged = (["ingress", "egress"] as const).map((each) => judge(packet, endpoint, each, cluster));
          expect(seen).toEqual(judged.map(({ verdict }) => verdict));
        }
      }
    }),
    { numRuns: proofSize({ everyDay: 200, soak: 20_000 }) },
  );
});
