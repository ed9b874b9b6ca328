/** No packet that the rules allow before and after a change is lost during it, and none that they deny passes. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type KernelTable, openKernelTable } from "../../src/agent/policy/kernel-table.ts";
import { TableKeeper } from "../../src/agent/policy/table-keeper.ts";
import { DROP_GROUP, FLOW_GROUP, POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { identity } from "../../src/identity.ts";
import {
  closeNetlinkSocket,
  type NetlinkSocket,
  openNetlinkSocket,
  ownSockets,
} from "../../src/linux/netlink-socket.ts";
import { commit } from "../../src/linux/nftables/commit.ts";
import { globalNetworkSet } from "../../src/model/global-network-set.ts";
import { type NetworkPolicySpec, networkPolicy } from "../../src/model/network-policy.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import type { DesiredTable } from "../../src/policy/table/desired-table.ts";
import { tableBatches } from "../../src/policy/table/table-changes.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { changesBetween, NO_RESOURCES } from "../support/policy-changes.ts";
import { proofSize } from "../support/proof-size.ts";
import {
  CLIENT,
  type FloodSite,
  floodProblem,
  INTERFACES,
  NONE_LOST,
  OPEN,
  openFloodSite,
  SERVER,
} from "./packet-flood.ts";
import { steppedCompiler } from "./stepped-compiler.ts";

const DURATION = proofSize({ everyDay: 500, soak: 5_000 });
const NODE = "here";

type Rule = NonNullable<NetworkPolicySpec["ingress"]>[number];
type State = Partial<PolicyResources>;

const endpoint = (index: number, address: string): WorkloadEndpoint =>
  workloadEndpoint.make(
    {
      name: `${NODE}-k8s-pod${index}-eth0`,
      namespace: "shop",
      labels: { [`${identity.labelPrefix}namespace`]: "shop", [`${identity.labelPrefix}orchestrator`]: "k8s" },
    },
    {
      ...{ node: NODE, orchestrator: "k8s", pod: `pod${index}`, endpoint: "eth0" },
      ...{ ipNetworks: [`${address}/32`], interfaceName: INTERFACES[index] ?? "" },
    },
  );
const policy = (name: string, spec: Partial<NetworkPolicySpec>) =>
  networkPolicy.make({ name, namespace: "shop" }, { tier: "default", ...spec });
const ingress = (...rules: readonly Rule[]) => policy("in", { ingress: [...rules] });
const allow = (rule: Partial<Rule>): Rule => ({ action: "Allow", protocol: "UDP", ...rule });
const toOpen = { destination: { ports: [OPEN] } };

const BASE: State = {
  endpoints: [endpoint(0, CLIENT), endpoint(1, SERVER)],
  networkPolicies: [policy("out", { types: ["Egress"], egress: [{ action: "Allow" }] })],
};
const withPolicies = (...policies: NonNullable<State["networkPolicies"]>): State => ({
  ...BASE,
  networkPolicies: [...(BASE.networkPolicies ?? []), ...policies],
});

/** Too many to be compared one by one, and none can be merged with another. */
const ports = (round: number) => [OPEN, ...Array.from({ length: 20 }, (_, index) => 7_000 + (round % 2) + 2 * index)];
const nets = (round: number) => Array.from({ length: 20 }, (_, index) => `10.${92 + (round % 5)}.${2 * index}.0/24`);
const clients = (...addresses: readonly string[]) => ({
  globalNetworkSets: [globalNetworkSet.make({ name: "clients", labels: { role: "client" } }, { nets: [...addresses] })],
});
const fromClients = ingress(
  allow({ ...toOpen, source: { selector: "role == 'client'", namespaceSelector: "global()" } }),
);

/** What the resources are in each round: the client may always reach the open port, and nothing else. */
const NETWORKS_CHANGE = (round: number): State => {
  const around = ["10.91.0.0/16", "10.91.1.0/24", "10.91.0.0/22"][round % 3] ?? "";
  return { ...withPolicies(fromClients), ...clients(around, ...nets(round)) };
};
const CHANGES: readonly (readonly [string, (round: number) => State])[] = [
  [
    "the long list of ports of a rule",
    (round) => withPolicies(ingress(allow({ destination: { ports: ports(round) } }))),
  ],
  [
    "the long list of networks of a rule",
    (round) => withPolicies(ingress(allow({ ...toOpen, source: { nets: [`${CLIENT}/31`, ...nets(round)] } }))),
  ],
  [
    "the long lists of networks in rules that deny",
    (round) => {
      const listed = [`${CLIENT}/31`, ...nets(round)];
      return withPolicies(
        ingress(
          { action: "Deny", protocol: "UDP", source: { notNets: listed } },
          { action: "Deny", protocol: "UDP", source: { nets: listed }, destination: { notPorts: [OPEN] } },
          { action: "Allow" },
        ),
      );
    },
  ],
  [
    "the policy of a pod, and the set that its rule needs",
    (round) => {
      const source = { selector: `!has(label${round % 3})` };
      return withPolicies(policy(`in-${round % 3}`, { ingress: [allow({ ...toOpen, source })] }));
    },
  ],
  [
    "a network set, from single addresses to networks and back",
    (round) => ({ ...withPolicies(fromClients), ...clients(round % 2 === 0 ? CLIENT : "10.91.1.0/24", "10.99.0.1") }),
  ],
  ["the networks of a network set", NETWORKS_CHANGE],
];

describe.skipIf(floodProblem !== undefined)(
  `packets while rules change${floodProblem === undefined ? "" : ` (skipped: ${floodProblem})`}`,
  () => {
    let site: FloodSite;
    let kernel: KernelTable;
    let socket: NetlinkSocket;
    beforeAll(() => {
      site = openFloodSite("packetflood");
    });
    afterAll(() => site[Symbol.dispose]());
    beforeEach(() => {
      kernel = insideNetns(site.host.path, () => openKernelTable(ownSockets));
      socket = insideNetns(site.host.path, () => openNetlinkSocket("netfilter"));
    });
    afterEach(() => {
      kernel.close();
      closeNetlinkSocket(socket);
    });

    /** A compiler at the first state, whose table is in the kernel, and how to go on to the next. */
    const begin = (of: (round: number) => State) => {
      const stepped = steppedCompiler(NODE, of);
      insideNetns(site.host.path, () => kernel.replace(stepped.compiler.table));
      return stepped;
    };
    const expectNoGap = async (change: () => void) => {
      const { lost, leaked, sent, changes } = await site.flood(DURATION, change);
      expect({ lost, leaked }).toEqual({ lost: NONE_LOST, leaked: 0 });
      expect(Math.min(sent, changes)).toBeGreaterThan(3);
    };

    for (const [title, of] of CHANGES) {
      test(`nothing is lost and nothing passes while this changes: ${title}`, async () => {
        const { compiler, next } = begin(of);

        await expectNoGap(() => {
          const refusal = kernel.change(compiler.table, next());
          if (refusal !== undefined) throw refusal.error;
        });
      });
    }

    test("nor while agent after agent takes over the table, each with another setting", async () => {
      const tables = (["Accept", "Drop"] as const).map((defaultEndpointToHostAction) => {
        const compiler = new PolicyCompiler({ node: NODE });
        const configuration = nodeAgentConfiguration.make({ name: "default" }, { defaultEndpointToHostAction });
        const state = { ...NO_RESOURCES, ...withPolicies(ingress(allow(toOpen))) };
        compiler.update(changesBetween(NO_RESOURCES, state, configuration));
        return compiler.table;
      });
      let round = 0;
      insideNetns(site.host.path, () => kernel.replace(tables[0] ?? { chains: new Map(), sets: new Map() }));

      await expectNoGap(() => {
        const table = tables[round++ % tables.length];
        expect(insideNetns(site.host.path, () => table && kernel.adopt(table))).toBeDefined();
      });
    });

    test("nor while flows are switched on and off, with another limit each time", async () => {
      const labelOf = () => new Uint8Array(16).fill(1, 4);
      const flows = { labelOf, deniedGroup: FLOW_GROUP };
      const compiler = new PolicyCompiler({ node: NODE, dropGroup: DROP_GROUP, flows });
      const state = { ...NO_RESOURCES, ...withPolicies(ingress(allow(toOpen))) };
      compiler.update(changesBetween(NO_RESOURCES, state));
      compiler.takeDelta();
      insideNetns(site.host.path, () => kernel.replace(compiler.table));
      let round = 0;

      await expectNoGap(() => {
        const spec = {
          flows: round % 2 === 0 ? "Enabled" : "Disabled",
          flowDeniedPerSecond: 1 + (round++ % 7),
        } as const;
        const configuration = nodeAgentConfiguration.make({ name: "default" }, spec);
        compiler.update(changesBetween(NO_RESOURCES, NO_RESOURCES, configuration));
        const refusal = kernel.change(compiler.table, compiler.takeDelta());
        if (refusal !== undefined) throw refusal.error;
      });

      expect(kernel.difference(compiler.table)).toBeUndefined();
    });

    test.each(["one agent", "agent after agent"] as const)(
      "nor while denied packets are dropped and rejected by turns, by %s",
      async (who) => {
        const rejecting = (denyAction: "Drop" | "Reject") =>
          nodeAgentConfiguration.make({ name: "default" }, { denyAction });
        // The second policy would allow what the first denies.
        const state = {
          ...NO_RESOURCES,
          ...withPolicies(
            policy("in-1", { ingress: [allow(toOpen), { action: "Deny" }] }),
            policy("in-2", { ingress: [{ action: "Allow" }] }),
          ),
        };
        const compilers = (["Drop", "Reject"] as const).map((denyAction) => {
          const compiler = new PolicyCompiler({ node: NODE, dropGroup: DROP_GROUP });
          compiler.update(changesBetween(NO_RESOURCES, state, rejecting(denyAction)));
          compiler.takeDelta();
          return compiler;
        });
        const [first, second] = compilers;
        if (first === undefined || second === undefined) throw new Error("no compilers");
        insideNetns(site.host.path, () => kernel.replace(first.table));
        let round = 0;

        await expectNoGap(() => {
          const isRejecting = round++ % 2 === 0;
          if (who === "agent after agent") {
            const { table } = isRejecting ? second : first;
            expect(insideNetns(site.host.path, () => kernel.adopt(table))).toBeDefined();
            return;
          }
          first.update(changesBetween(NO_RESOURCES, NO_RESOURCES, rejecting(isRejecting ? "Reject" : "Drop")));
          const refusal = kernel.change(first.table, first.takeDelta());
          if (refusal !== undefined) throw refusal.error;
        });

        if (who === "one agent") expect(kernel.difference(first.table)).toBeUndefined();
      },
    );

    test("nor while agents take over from those of an earlier release, without reports of drops and limits of Log", async () => {
      const logged = ingress({ ...allow(toOpen), action: "Log" }, allow(toOpen));
      const [before, now] = [undefined, DROP_GROUP].map((dropGroup) => {
        const compiler = new PolicyCompiler({ node: NODE, dropGroup });
        compiler.update(changesBetween(NO_RESOURCES, { ...NO_RESOURCES, ...withPolicies(logged) }));
        return compiler.table;
      });
      if (before === undefined || now === undefined) throw new Error("no tables");
      const tables = [withoutLimits(before), now];
      let round = 0;
      insideNetns(site.host.path, () => kernel.replace(withoutLimits(before)));

      await expectNoGap(() => {
        const table = tables[++round % tables.length] ?? now;
        expect(insideNetns(site.host.path, () => kernel.adopt(table))).toBeDefined();
      });
    });

    test("nor while agent after agent takes over the table, each with other networks in a network set", async () => {
      const tables = Array.from(
        { length: 6 },
        (_, round) => steppedCompiler(NODE, () => NETWORKS_CHANGE(round)).compiler.table,
      );
      let round = 0;
      insideNetns(site.host.path, () => kernel.replace(tables[0] ?? { chains: new Map(), sets: new Map() }));

      await expectNoGap(() => {
        const table = tables[++round % tables.length];
        expect(insideNetns(site.host.path, () => table && kernel.adopt(table))).toBeDefined();
      });
    });

    test("networks that have grown beside others can be written again as a whole, and removed", () => {
      const sets = [["10.91.0.0/23"], ["10.91.0.0/22"], []].map((networks) => [
        ...clients(...networks).globalNetworkSets,
        globalNetworkSet.make({ name: "others", labels: { role: "client" } }, { nets: nets(0) }),
      ]);
      const { compiler, next } = begin((round) => ({
        ...withPolicies(fromClients),
        globalNetworkSets: sets[round] ?? [],
      }));
      expect(kernel.change(compiler.table, next())).toBeUndefined();

      insideNetns(site.host.path, () => kernel.replace(compiler.table));
      expect(kernel.change(compiler.table, next())).toBeUndefined();
      expect(kernel.difference(compiler.table)).toBeUndefined();
    });

    test("nor while the changes of another program are reverted", async () => {
      const { compiler } = begin(() => withPolicies(ingress(allow(toOpen))));
      const keeper = new TableKeeper({ compiler, kernel, isWanted: () => true, report: () => {} });
      insideNetns(site.host.path, () => keeper.update(changesBetween(NO_RESOURCES, NO_RESOURCES)));

      await expectNoGap(() => {
        commit(socket, [{ kind: "add-chain", table: POLICY_TABLE, chain: { name: "foreign" } }]);
        insideNetns(site.host.path, () => keeper.revertForeignChanges());
      });

      expect(kernel.difference(compiler.table)).toBeUndefined();
    });

    test("nor when agent after agent is killed after its first batch, and the next takes over", async () => {
      let kind = 0;
      const { compiler, next } = begin((round) => CHANGES[kind++ % CHANGES.length]?.[1](round) ?? BASE);

      await expectNoGap(() => {
        const [first = []] = tableBatches(POLICY_TABLE, compiler.table, next());
        commit(socket, first);
        expect(insideNetns(site.host.path, () => kernel.adopt(compiler.table))).toBeDefined();
      });

      expect(kernel.difference(compiler.table)).toBeUndefined();
    });
  },
);

/** As an earlier release wrote it: rules with the action Log have neither a counter nor a limit. */
function withoutLimits(table: DesiredTable): DesiredTable {
  const chains = Array.from(table.chains, ([name, { chain, rules }]) => {
    const former = rules.map((rule) =>
      rule.expressions.at(-1)?.kind === "log"
        ? { ...rule, expressions: rule.expressions.filter(({ kind }) => kind !== "counter" && kind !== "limit") }
        : rule,
    );
    return [name, { chain, rules: former }] as const;
  });
  return { chains: new Map(chains), sets: table.sets };
}
