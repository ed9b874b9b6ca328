/** The policy table in a real kernel: changes of random clusters, and those of other programs. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type KernelTable, openKernelTable } from "../../src/agent/policy/kernel-table.ts";
import { POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { identity } from "../../src/identity.ts";
import { closeNetlinkSocket, openNetlinkSocket, ownSockets } from "../../src/linux/netlink-socket.ts";
import { commit } from "../../src/linux/nftables/commit.ts";
import { tier } from "../../src/model/tier.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import { globalPolicy } from "../support/global-policy.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { changesBetween, NO_RESOURCES } from "../support/policy-changes.ts";
import { proofSize } from "../support/proof-size.ts";
import { clusters, LOCAL_NODE } from "../support/random-cluster.ts";

const area = new NetnsArea("policytable");
const ENDPOINT = workloadEndpoint.make(
  { name: "pod", namespace: "red" },
  { node: LOCAL_NODE, endpoint: "eth0", interfaceName: `${identity.interfacePrefix}pod`, ipNetworks: ["10.0.0.1/32"] },
);
const able = canMakeNetns && Bun.which("nft") !== null;
const why = able ? "" : " (skipped: needs root, ip, nsenter and nft)";

describe.skipIf(!able)(`the policy table in a private namespace${why}`, () => {
  let place: TestNetns;
  let kernel: KernelTable;
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    place = area.create();
    kernel = insideNetns(place.path, () => openKernelTable(ownSockets));
  });
  afterEach(() => {
    kernel.close();
    area.delete(place);
  });

  const replace = (compiler: PolicyCompiler) => insideNetns(place.path, () => void kernel.replace(compiler.table));
  const nft = (command: string) => runIn(place, ["nft", command]);

  test("is what the compiler says after every change of random clusters, and own changes are not foreign", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(clusters, fc.boolean()), { minLength: 2, maxLength: 4 }), (states) => {
        const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
        compiler.takeDelta();
        replace(compiler);
        let before = NO_RESOURCES;
        for (const [state, hasIpvs] of states) {
          compiler.update(changesBetween(before, state));
          compiler.setIpvs(hasIpvs);
          expect(kernel.change(compiler.table, compiler.takeDelta())).toBeUndefined();
          expect([kernel.difference(compiler.table), kernel.notice()]).toEqual([undefined, { kind: "nothing" }]);
          before = state;
        }
        replace(compiler);
        expect(kernel.difference(compiler.table)).toBeUndefined();
      }),
      { numRuns: proofSize({ everyDay: 30, soak: 1_000 }) },
    );
  });

  test("of a former agent is changed to that of the next one, without replacing it", () => {
    fc.assert(
      fc.property(clusters, clusters, fc.tuple(fc.boolean(), fc.boolean()), (former, later, hadIpvs) => {
        const compilers = [former, later].map((cluster, index) => {
          const compiler = new PolicyCompiler({ node: LOCAL_NODE });
          compiler.setIpvs(hadIpvs[index] ?? false);
          compiler.update(changesBetween(NO_RESOURCES, cluster));
          return compiler;
        });
        const [first, second] = compilers;
        if (first === undefined || second === undefined) throw new Error("two compilers");
        replace(first);
        expect(insideNetns(place.path, () => kernel.adopt(second.table))).toBeDefined();
        expect(kernel.difference(second.table)).toBeUndefined();
        expect(kernel.notice()).toEqual({ kind: "unknown" });
        nft(`flush chain ${POLICY_TABLE.family} ${POLICY_TABLE.name} to_workload`);
        expect(insideNetns(place.path, () => kernel.adopt(second.table))).toBeDefined();
        expect(kernel.difference(second.table)).toBeUndefined();
      }),
      { numRuns: proofSize({ everyDay: 20, soak: 1_000 }) },
    );
  });

  const { family, name } = POLICY_TABLE;
  const table = `${family} ${name}`;
  test.each([
    [`flush chain ${table} to_workload`, "rules of chain"],
    [`add rule ${table} to_workload accept`, "rules of chain"],
    [`add chain ${table} foreign`, '"foreign" was added'],
    [`add set ${table} foreign { type ipv4_addr; }`, '"foreign" was added'],
    [`add element ${table} workloads_to { "vend1" : drop }`, "elements of set"],
    [`delete table ${table}`, "is missing"],
    ["flush ruleset", "is missing"],
  ])("notices %p, and finds the difference", (command, difference) => {
    const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
    replace(compiler);
    expect([kernel.notice(), kernel.difference(compiler.table)]).toEqual([{ kind: "nothing" }, undefined]);
    nft(command);

    expect(kernel.difference(compiler.table)).toContain(difference);
    expect(kernel.notice()).toEqual({ kind: "changed", by: expect.stringMatching(/^"nft" \(process \d+\)$/) });
    expect(kernel.notice()).toEqual({ kind: "nothing" });
  });

  test("is on a host without IPVS what it was before there was IPVS, and judges packets to the host once in both", () => {
    const compiler = new PolicyCompiler({ node: LOCAL_NODE });
    replace(compiler);
    const listed = () => runIn(place, ["nft", "list", "table", family, name]);
    const inputPriorities = () => [...listed().matchAll(/hook input priority (\w+);/g)].map(([, each]) => each);
    const before = listed();
    expect([inputPriorities(), before.includes("hook output")]).toEqual([["filter"], false]);

    compiler.takeDelta();
    compiler.setIpvs(true);
    expect(kernel.change(compiler.table, compiler.takeDelta())).toBeUndefined();
    expect(inputPriorities()).toEqual(["97", "101"]);
    compiler.setIpvs(false);
    expect(kernel.change(compiler.table, compiler.takeDelta())).toBeUndefined();
    expect(listed().split("\n").toSorted()).toEqual(before.split("\n").toSorted());
  });

  test("finds that another program changed the verdict of an interface", () => {
    const compiler = new PolicyCompiler({ node: LOCAL_NODE });
    compiler.update(changesBetween(NO_RESOURCES, { ...NO_RESOURCES, endpoints: [ENDPOINT] }));
    replace(compiler);
    const [element, map] = [`"${ENDPOINT.spec.interfaceName}"`, `element ${table} workloads_to`];
    nft(`delete ${map} { ${element} }; add ${map} { ${element} : accept }`);

    expect(kernel.difference(compiler.table)).toContain("elements of set");
  });

  test("has policies with very many names of ports, and tiers with very long names", () => {
    const names = Array.from({ length: 100 }, (_, index) => `port${index}`);
    const name = "t".repeat(200);
    const tiers = [tier.make({ name }, { defaultAction: "Deny" })];
    const rules = [{ notPorts: names }, { ports: names }];
    const ingress = rules.map((each) => ({ action: "Allow", protocol: "TCP", source: each, destination: each }));
    const globalNetworkPolicies = [globalPolicy(`${name}.x`, { tier: name, ingress })];
    const compiler = new PolicyCompiler({ node: LOCAL_NODE });
    const resources = { ...NO_RESOURCES, endpoints: [ENDPOINT], tiers, globalNetworkPolicies };
    compiler.update(changesBetween(NO_RESOURCES, resources));
    replace(compiler);

    expect(kernel.difference(compiler.table)).toBeUndefined();
  });

  test("does not notice changes of other tables", () => {
    replace(new PolicyCompiler({ node: LOCAL_NODE, hasServices: true }));
    nft(
      `add table ip ${name}; add chain ip ${name} a; add table inet other; add chain inet other b; delete table inet other`,
    );

    expect(kernel.notice()).toEqual({ kind: "nothing" });
  });

  test("knows that it may have missed something if more was changed than fits into its buffer", () => {
    replace(new PolicyCompiler({ node: LOCAL_NODE, hasServices: true }));
    const other = { family: "ip", name: "other" } as const;
    const elements = Array.from({ length: 60_000 }, (_, index) => ({
      key: Uint8Array.of(10, 1, index >> 8, index & 255),
    }));
    const socket = insideNetns(place.path, () => openNetlinkSocket("netfilter"));
    for (let count = 0; count < 4; count++) {
      commit(socket, [
        { kind: "add-table", table: other },
        { kind: "delete-table", table: other },
        { kind: "add-table", table: other },
        { kind: "add-set", table: other, set: { name: "many", key: ["ipv4_addr"] } },
        { kind: "add-elements", table: other, set: "many", elements },
      ]);
    }
    closeNetlinkSocket(socket);

    expect(kernel.notice().kind).toBe("unknown");
  });
});
