/** What packets meet between the batches of a change. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { globalPolicy } from "../../../test/support/global-policy.ts";
import { ImitatedTable } from "../../../test/support/imitated-table.ts";
import { interpretPassage } from "../../../test/support/interpret/interpret-passage.ts";
import { packetBytes } from "../../../test/support/interpret/packet-bytes.ts";
import { changesBetween, NO_RESOURCES, sidecarsOf } from "../../../test/support/policy-changes.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { histories, LOCAL_NODE, packets, passages } from "../../../test/support/random-cluster.ts";
import { type HostEndpoint, hostEndpoint } from "../../model/host-endpoint.ts";
import { PolicyCompiler } from "../compile/compiler.ts";
import { elementsOfRanges } from "../compile/range-elements.ts";
import type { PolicyResources } from "../judge/resources.ts";
import type { DesiredTable } from "./desired-table.ts";
import { TableBuilder } from "./table-builder.ts";
import { type Batch, tableBatches, wholeTable } from "./table-changes.ts";

const TABLE = { family: "inet", name: "policy" } as const;
const RUNS = proofSize({ everyDay: 150, soak: 5_000 });

interface AppliedBatch {
  readonly kernel: ImitatedTable;
  readonly batch: Batch;
  /** The number of the state of the history that it leads to. */
  readonly step: number;
}

/** Applies the changes of a random history; `visit` is called after each batch. */
function play(history: readonly PolicyResources[], visit: (applied: AppliedBatch) => void): void {
  const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true, dropGroup: 7 });
  const kernel = new ImitatedTable();
  kernel.apply(wholeTable(TABLE, compiler.table, ""));
  compiler.takeDelta();
  let before: PolicyResources = NO_RESOURCES;
  for (const [step, cluster] of history.entries()) {
    compiler.update(changesBetween(before, cluster));
    compiler.setSidecars(sidecarsOf(cluster));
    for (const batch of tableBatches(TABLE, compiler.table, compiler.takeDelta())) {
      kernel.apply(batch);
      visit({ kernel, batch, step });
    }
    before = cluster;
  }
}

function tableOf(cluster: PolicyResources): DesiredTable {
  const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true, dropGroup: 7 });
  compiler.update(changesBetween(NO_RESOURCES, cluster));
  compiler.setSidecars(sidecarsOf(cluster));
  return compiler.table;
}

test("after each batch, all packets have the verdicts of before the change or all have those of after it", () => {
  const questions = fc.array(fc.tuple(packets, passages), { minLength: 30, maxLength: 30 });
  fc.assert(
    fc.property(histories, questions, (history, asked) => {
      const verdictsOf = (table: DesiredTable) =>
        asked.map(([packet, passage]) => interpretPassage(table, passage, packetBytes(packet)).verdict);
      const expected = [NO_RESOURCES, ...history].map((cluster) => verdictsOf(tableOf(cluster)));
      play(history, ({ kernel, step }) => {
        expect([expected[step], expected[step + 1]]).toContainEqual(verdictsOf(kernel));
      });
    }),
    { numRuns: RUNS },
  );
});

test("no packet reaches a chain or looks up a set that is created in the same batch", () => {
  fc.assert(
    fc.property(histories, (history) => {
      play(history, ({ kernel, batch }) => {
        const created = batch.flatMap((change) => {
          if (change.kind === "add-set") return [change.set.name];
          return change.kind === "add-chain" && change.chain.base === undefined ? [change.chain.name] : [];
        });
        const reachable = kernel.reachable();
        expect(created.filter((name) => reachable.has(name))).toEqual([]);
      });
    }),
    { numRuns: RUNS },
  );
});

test("a set gets its first network: the address in it is removed last, and another one at once", () => {
  const address = (last: number) => ({ key: Uint8Array.of(10, 0, 0, last) });
  const builder = new TableBuilder();
  builder.createSet({ name: "s_x_4", key: ["ipv4_addr"] });
  for (const last of [1, 200]) builder.putElement("s_x_4", `${last}`, address(last));
  builder.takeDelta();
  builder.createSet({ name: "n_x_4", key: ["ipv4_addr"], holdsIntervals: true });
  for (const [identity, element] of elementsOfRanges([{ first: address(0).key, last: address(127).key }]))
    builder.putElement("n_x_4", identity, element);
  for (const last of [1, 200]) builder.deleteElement("s_x_4", `${last}`);

  const batches = tableBatches(TABLE, builder, builder.takeDelta());

  expect(batches.map((batch) => batch.map(({ kind }) => kind))).toEqual([
    ["add-set", "add-elements"],
    ["delete-elements"],
    ["delete-elements"],
  ]);
  expect(batches.slice(1).flat()).toMatchObject([{ elements: [address(200)] }, { elements: [address(1)] }]);
});

test("a host endpoint for all interfaces replaces one that names its interface: the interface is removed last", () => {
  const named = (interfaceName: string) => ({
    ...NO_RESOURCES,
    hostEndpoints: [hostEndpoint.make({ name: "one" }, { node: LOCAL_NODE, interfaceName })],
  });
  const compiler = new PolicyCompiler({ node: LOCAL_NODE, dropGroup: 7 });
  compiler.update(changesBetween(NO_RESOURCES, named("eth0")));
  compiler.takeDelta();
  compiler.update(changesBetween(named("eth0"), named("*")));

  const batches = tableBatches(TABLE, compiler.table, compiler.takeDelta());

  const isRemoval = ({ kind }: Batch[number]) => kind.startsWith("delete-");
  expect(batches.map((batch) => batch.filter(isRemoval).map(({ kind }) => kind))).toEqual([
    [],
    ["delete-elements", "delete-elements"],
  ]);
});

test("a named interface becomes one of all: its former policies do not see the new addresses of their sets", () => {
  const host = (name: string, interfaceName: string, address: string) =>
    hostEndpoint.make({ name, labels: { name } }, { node: LOCAL_NODE, interfaceName, expectedIPs: [address] });
  const egress = (name: string, ...rules: readonly object[]) =>
    globalPolicy(name, { selector: `name == '${name}'`, types: ["Egress"], egress: rules });
  const [allow, denyHosts] = [{ action: "Allow" }, { action: "Deny", source: { selector: "all()" } }];
  const globalNetworkPolicies = [egress("named", denyHosts, allow), egress("others", allow, denyHosts)];
  const clusterOf = (only: HostEndpoint) => ({ ...NO_RESOURCES, globalNetworkPolicies, hostEndpoints: [only] });
  const history = [clusterOf(host("named", "eth0", "10.0.0.1")), clusterOf(host("others", "*", "10.0.0.3"))];
  const address = { family: 4, value: 0x0a_00_00_03n } as const;
  const packet = packetBytes({ source: address, destination: address, protocol: 1, icmp: { type: 8, code: 0 } });
  const verdicts: string[] = [];

  play(history, ({ kernel, step }) => {
    if (step === 1) verdicts.push(interpretPassage(kernel, { kind: "from host", to: "eth0" }, packet).verdict);
  });

  expect(verdicts).toEqual(["accept", "accept", "accept"]);
});
