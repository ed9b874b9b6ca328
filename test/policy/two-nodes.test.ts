/**
 * Two nodes with a router between them, one datastore, routes by hand: each node enforces the policies of its own pods,
 * and knows the pods of the other one by their labels.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { openTcp, serveEchoes } from "./conversation.ts";
import { openPolicySite, type PodEnd, type PolicySite, type WrittenPolicy } from "./policy-site.ts";
import { type Outcome, outcomeOf, serve } from "./probes.ts";
import { LONG_ENOUGH, REFUSED, whatIsTold } from "./refusals.ts";
import { connect, routeTo } from "./two-nodes.ts";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);
const [PORT, ECHO_PORT] = [80, 82];

describe("policy on two nodes", () => {
  let router: Host;
  let first: PolicySite;
  let second: PolicySite;
  let servers: readonly Disposable[];
  const pods = new Map<string, PodEnd>();
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    router = await openHost();
    first = await openPolicySite({ node: "node-1" });
    second = await openPolicySite({ node: "node-2", sharedStore: first.site.store });
    await connect(router, first.site.host, 1);
    await connect(router, second.site.host, 2);
    for (const name of ["x", "y"]) await first.labelNamespace(name, { ns: name });
    for (const [site, hop, names] of [
      [first, 1, ["x/a", "y/a"]],
      [second, 2, ["x/b", "y/b"]],
    ] as const) {
      for (const name of names) {
        const pod = await site.addPod(name, { pod: name.slice(2) });
        pods.set(name, pod);
        await routeTo(router, pod, hop);
      }
    }
    servers = (await Promise.all([...pods.values()].map((pod) => serve(pod, [PORT])))).flat();
  });
  afterAll(async () => {
    for (const server of servers ?? []) server[Symbol.dispose]();
    await second?.[Symbol.asyncDispose]();
    await first?.[Symbol.asyncDispose]();
    await router?.[Symbol.asyncDispose]();
  });

  /** Of TCP and UDP in both families; they must agree. */
  async function outcome(from: string, to: string, expected: Outcome): Promise<Outcome | "mixed"> {
    const [source, destination] = [pods.get(from), pods.get(to)];
    if (source === undefined || destination === undefined) throw new Error(`no pods ${from}, ${to}`);
    const probes = (["tcp", "udp"] as const).flatMap((protocol) =>
      ([4, 6] as const).map((family) => ({ from: source, to: destination, protocol, port: PORT, family })),
    );
    const all = await Promise.all(probes.map((probe) => outcomeOf(probe, expected, router)));
    return all.every((each) => each === all[0]) ? (all[0] ?? "mixed") : "mixed";
  }

  async function expectTable(table: Readonly<Record<string, Outcome>>): Promise<void> {
    const seen = await Promise.all(
      Object.entries(table).map(async ([row, expected]) => {
        const [from = "", to = ""] = row.split(" -> ");
        return [row, await outcome(from, to, expected)] as const;
      }),
    );
    expect(Object.fromEntries(seen)).toEqual(table);
  }

  const applied = () => Promise.all([first.untilApplied(), second.untilApplied()]);

  test("without policies the pods of both nodes reach each other", async () => {
    await first.setPolicies([]);
    await applied();
    await expectTable({ "x/a -> x/b": "allow", "x/b -> x/a": "allow", "y/a -> x/b": "allow", "y/b -> y/a": "allow" });
  });

  test("ingress selects pods of the other node by their labels", async () => {
    await first.setPolicies([
      {
        namespace: "x",
        name: "in",
        spec: {
          selector: "pod == 'b'",
          types: ["Ingress"],
          ingress: [{ action: "Allow", source: { selector: "pod == 'a'" } }],
        },
      },
    ]);
    await applied();
    await expectTable({
      "x/a -> x/b": "allow",
      "y/a -> x/b": "deny",
      "y/b -> x/b": "deny",
      "x/b -> y/a": "allow",
      "y/a -> y/b": "allow",
    });
  });

  test("a pod of the other node is told at once that it is denied, if the node of the other pod rejects", async () => {
    const settings = nodeAgentConfiguration.make({ name: "node.node-2" }, { denyAction: "Reject" });
    const key = NODE_AGENT_CONFIGURATION.key({ name: "node.node-2" });
    await first.store.commit([{ kind: "put", key, value: nodeAgentConfiguration.write(settings) }]);
    await applied();
    const [source, destination] = [pods.get("y/a"), pods.get("x/b")];
    for (const protocol of ["tcp", "udp"] as const)
      for (const [index, family] of ([4, 6] as const).entries()) {
        const address = destination?.addresses[index] ?? "";
        const question = { from: { netns: source?.netns ?? "" }, address, protocol, port: PORT };
        expect(await whatIsTold(question, LONG_ENOUGH)).toBe(REFUSED[family][protocol]);
      }
    await first.site.store.remove(key);
    await applied();
  });

  test("a remote pod that is relabelled is let in within a second", async () => {
    await first.labelPod("x/a", { pod: "former" });
    await pollUntil(
      async () => (await outcome("x/a", "x/b", "deny")) === "deny",
      "the remote pod to be kept out",
      1_500,
    );
    await first.labelPod("x/a", { pod: "a" });
    await pollUntil(
      async () => (await outcome("x/a", "x/b", "deny")) === "allow",
      "the remote pod to be let in",
      1_500,
    );
  });

  test("egress selects pods of the other node, and both sides must agree", async () => {
    await first.setPolicies([
      {
        namespace: "x",
        name: "out",
        spec: {
          selector: "pod == 'a'",
          types: ["Egress"],
          egress: [{ action: "Allow", destination: { namespaceSelector: "all()", selector: "pod == 'b'" } }],
        },
      },
      {
        namespace: "y",
        name: "in",
        spec: {
          selector: "all()",
          types: ["Ingress"],
          ingress: [{ action: "Allow", source: { namespaceSelector: "ns == 'y'" } }],
        },
      },
    ]);
    await applied();
    await expectTable({
      "x/a -> x/b": "allow",
      "x/a -> y/b": "deny",
      "x/a -> y/a": "deny",
      "y/a -> y/b": "allow",
      "x/b -> x/a": "allow",
      "x/b -> y/a": "deny",
    });
  });

  test("an open connection ends on both nodes, whichever of them denies it, and no other does", async () => {
    await first.setPolicies([]);
    const settings = nodeAgentConfiguration.make({ name: "default" }, { openConnections: "End" });
    const key = NODE_AGENT_CONFIGURATION.key({ name: "default" });
    await first.store.commit([{ kind: "put", key, value: nodeAgentConfiguration.write(settings) }]);
    await applied();
    const echoes = new Map(
      await Promise.all(
        ["x/b", "y/b"].map(async (name) => [name, await serveEchoes(pods.get(name)?.netns ?? "", ECHO_PORT)] as const),
      ),
    );
    const open = async (from: string, to: string) => {
      const [source, destination] = [pods.get(from), pods.get(to)];
      const all = [0, 1].map(async (family) => {
        const options = {
          ...{ netns: source?.netns ?? "", address: destination?.addresses[family] ?? "", port: ECHO_PORT },
        };
        const conversation = await openTcp(`${from} to ${to}, ${family}`, options);
        if (conversation === undefined || !(await conversation.works())) throw new Error(`no ${from} to ${to}`);
        return conversation;
      });
      const conversations = await Promise.all(all);
      const areLost = () => conversations.every(({ isLost, name }) => isLost && echoes.get(to)?.hasLost(name) === true);
      return {
        conversations,
        untilLost: () => pollUntil(async () => areLost(), `both ends of ${from} to ${to} to be reset`, 10_000),
      };
    };
    const [kept, byIngress, byEgress] = [await open("x/a", "x/b"), await open("y/a", "x/b"), await open("y/a", "y/b")];
    const ingress: WrittenPolicy = {
      ...{ namespace: "x", name: "in" },
      spec: {
        ...{ selector: "pod == 'b'", types: ["Ingress"] },
        ingress: [{ action: "Allow", source: { selector: "pod == 'a'" } }],
      },
    };
    await first.setPolicies([ingress]);
    await byIngress.untilLost();
    for (const each of [...kept.conversations, ...byEgress.conversations]) expect(await each.works()).toBe(true);
    const egress: WrittenPolicy = { namespace: "y", name: "out", spec: { selector: "pod == 'a'", types: ["Egress"] } };
    await first.setPolicies([ingress, egress]);
    await byEgress.untilLost();
    for (const each of kept.conversations) expect(await each.works()).toBe(true);

    for (const { conversations } of [kept, byIngress, byEgress])
      for (const each of conversations) each[Symbol.dispose]();
    for (const server of echoes.values()) server[Symbol.dispose]();
    await first.site.store.remove(key);
    await applied();
  });
});
