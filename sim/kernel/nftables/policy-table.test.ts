/** The product's own writers of the policy table, on the model: the same table as in the kernel, the same verdicts as the judge. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { openKernelTable } from "../../../src/agent/policy/kernel-table.ts";
import { TableKeeper } from "../../../src/agent/policy/table-keeper.ts";
import { POLICY_TABLE } from "../../../src/firewall/policy-table.ts";
import { closeNetlinkSocket, ownSockets, type SocketOpener } from "../../../src/linux/netlink-socket.ts";
import { runInNewNetns } from "../../../src/linux/netns.ts";
import { commit } from "../../../src/linux/nftables/commit.ts";
import { PolicyCompiler } from "../../../src/policy/compile/compiler.ts";
import { judge } from "../../../src/policy/judge/judge.ts";
import type { PolicyResources } from "../../../src/policy/judge/resources.ts";
import { canMakeNetns } from "../../../test/support/netns.ts";
import { changesBetween, NO_RESOURCES, sidecarsOf } from "../../../test/support/policy-changes.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { clusters, LOCAL_NODE, packets } from "../../../test/support/random-cluster.ts";
import { foreignDeleteElements, foreignDeleteTable, foreignFlush } from "./foreign-edit.ts";
import { ModelSockets } from "./model-sockets.ts";
import { rulesetOf, text } from "./observe.ts";
import { tableKey } from "./state.ts";
import { newFlow, verdictOf } from "./verdict.ts";

const why = canMakeNetns ? "" : " (skipped: needs root)";
const RUNS = proofSize({ everyDay: 8, soak: 500 });
const noRoutes = { route: () => undefined, addressOf: () => undefined, nameOf: () => undefined };

describe("the policy table on the model of nf_tables", () => {
  test.skipIf(!canMakeNetns)(
    `is the same as in the kernel, after a change too${why}`,
    () => {
      fc.assert(
        fc.property(clusters, clusters, (before, after) => {
          const real = runInNewNetns(() => ({ seen: writtenOn(ownSockets, before, after) })).seen;

          expect(writtenOn(new ModelSockets(), before, after)).toEqual(real);
        }),
        { numRuns: RUNS },
      );
    },
    600_000,
  );

  test("judges packets as the judge does", () => {
    fc.assert(
      fc.property(clusters, fc.array(packets, { minLength: 10, maxLength: 10 }), (cluster, some) => {
        const sockets = new ModelSockets();
        const workloads: PolicyResources = { ...cluster, hostEndpoints: [] };
        const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
        compiler.update(changesBetween(NO_RESOURCES, workloads));
        compiler.setSidecars(sidecarsOf(cluster));
        openKernelTable(sockets).replace(compiler.table);
        for (const endpoint of cluster.endpoints.filter(({ spec }) => spec.node === LOCAL_NODE)) {
          const link = { index: 7, name: endpoint.spec.interfaceName ?? "" };
          for (const packet of some)
            for (const direction of ["ingress", "egress"] as const) {
              const way = direction === "ingress" ? { oif: link } : { iif: link };
              const { verdict } = verdictOf(sockets.state, { hook: "forward", packet, ...way }, newFlow(), noRoutes);
              const judged = judge(packet, endpoint, direction, workloads).verdict;
              expect({ packet, direction, verdict }).toEqual({
                packet,
                direction,
                verdict: judged === "allow" ? "accept" : "drop",
              });
            }
        }
      }),
      { numRuns: proofSize({ everyDay: 25, soak: 5_000 }) },
    );
  }, 3_600_000);

  test("is repaired after every change of another program, and if a change is refused once", () => {
    const edits = fc.tuple(fc.constantFrom("flush" as const, "elements" as const, "table" as const), fc.nat(50));
    fc.assert(
      fc.property(
        clusters,
        clusters,
        fc.array(edits, { maxLength: 4 }),
        fc.boolean(),
        (first, second, todo, isRefused) => {
          const sockets = new ModelSockets();
          const kernel = openKernelTable(sockets);
          const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
          const keeper = new TableKeeper({ compiler, kernel, isWanted: () => true, report: () => {} });
          keeper.update(changesBetween(NO_RESOURCES, first));
          for (const [edit, choice] of todo) {
            foreignEdit(sockets, edit, choice);
            keeper.revertForeignChanges();
            expect(kernel.difference(compiler.table)).toBeUndefined();
          }
          if (isRefused) sockets.state.faults.refuseBatch("ENOMEM");
          keeper.update(changesBetween(first, second));

          expect(kernel.difference(compiler.table)).toBeUndefined();
        },
      ),
      { numRuns: proofSize({ everyDay: 20, soak: 2_000 }) },
    );
  }, 3_600_000);
});

function writtenOn(kernel: SocketOpener, before: PolicyResources, after: PolicyResources): string {
  const table = openKernelTable(kernel);
  const socket = kernel.openSocket("netfilter");
  try {
    const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
    compiler.update(changesBetween(NO_RESOURCES, before));
    compiler.takeDelta();
    table.replace(compiler.table);
    const first = { difference: table.difference(compiler.table), ...rulesetOf(socket) };
    compiler.update(changesBetween(before, after));
    const refusal = table.change(compiler.table, compiler.takeDelta())?.error.message;
    const second = { difference: table.difference(compiler.table), refusal, ...rulesetOf(socket) };
    return text([first, second, table.notice()]);
  } finally {
    table.close();
    closeNetlinkSocket(socket);
  }
}

function foreignEdit(sockets: ModelSockets, edit: "flush" | "elements" | "table", choice: number): void {
  const table = sockets.state.tables.get(tableKey(POLICY_TABLE.family, POLICY_TABLE.name));
  if (table === undefined) throw new Error("The keeper has not written its table");
  const changes = {
    flush: () => foreignFlush(table, choice),
    elements: () => foreignDeleteElements(table, choice),
    table: () => foreignDeleteTable(table),
  }[edit]();
  commit(sockets.open({ processId: 2, processName: "other" }), changes);
}
