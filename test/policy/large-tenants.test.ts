/**
 * Large policies wait behind the changes of other tenants. The order is read from what the kernel tells `nft monitor`, not
 * from the time that anything takes.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { LARGE } from "../../src/agent/policy/turns.ts";
import { hostProblem } from "../support/host.ts";
import { askTcpWithin } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { type End, openPolicySite, type PolicySite, type WrittenPolicy } from "./policy-site.ts";
import { serve } from "./probes.ts";

const PORT = 80;
const PATIENCE_MILLISECONDS = 300;
const LARGE_NAMESPACES = ["large1", "large2", "large3"];
const LOG = "monitor.log";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);

/** With so many other selectors. */
const allowing = (namespace: string, app: string, others = 0): WrittenPolicy => ({
  namespace,
  name: "clients",
  spec: {
    types: ["Ingress"],
    ingress: [`app == '${app}'`, ...Array.from({ length: others }, (_, index) => `a${index} == 'a'`)].map(
      (selector) => ({
        action: "Allow" as const,
        source: { selector, namespaceSelector: "all()" },
      }),
    ),
  },
});
const large = (namespace: string, app: string) => allowing(namespace, app, LARGE.lists + 1);

describe("large policies beside the changes of other tenants", () => {
  let policies: PolicySite;
  let client: End;
  const servers: End[] = [];
  const listeners: Disposable[] = [];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policies = await openPolicySite();
    for (const namespace of ["clients", "small", ...LARGE_NAMESPACES]) await policies.labelNamespace(namespace, {});
    client = await policies.addPod("clients/client", { app: "client" });
    for (const namespace of ["small", ...LARGE_NAMESPACES]) {
      const server = await policies.addPod(`${namespace}/server`);
      servers.push(server);
      listeners.push(...(await serve(server, [PORT])));
    }
    await policies.setPolicies(["small", ...LARGE_NAMESPACES].map((namespace) => allowing(namespace, "nobody")));
    await policies.untilApplied();
    policies.site.host.start(["nft", "monitor"], LOG);
  });
  afterAll(async () => {
    for (const each of listeners) each[Symbol.dispose]();
    await policies?.[Symbol.asyncDispose]();
  });

  const connections = () =>
    Promise.all(
      servers.map(async (server) =>
        (await askTcpWithin(PATIENCE_MILLISECONDS, client.netns, server.addresses[0], PORT)).startsWith(server.name),
      ),
    );
  const monitored = () => {
    const { host } = policies.site;
    const file = host.view(`${host.directory}/${LOG}`);
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  /** Of each transaction of the kernel that has added rules: of which namespaces. */
  const order = () =>
    monitored()
      .split(/^# new generation .*$/m)
      .slice(0, -1)
      .map(namespacesIn)
      .filter((namespaces) => namespaces.length > 0);

  test("of changes that come together, those of others come first, and each large namespace alone", async () => {
    await pollUntil(async () => {
      await policies.untilApplied();
      return monitored().includes("# new generation");
    }, "the monitor to listen");
    expect(await connections()).toEqual([false, false, false, false]);

    await policies.setPolicies([...LARGE_NAMESPACES.map((each) => large(each, "client")), allowing("small", "client")]);
    await pollUntil(async () => (await connections()).every(Boolean), "all to be allowed");

    expect(order()).toEqual([["small"], ["large1"], ["large2"], ["large3"]]);
  });

  test("they take effect together with the labels of a pod that their former rules allow", async () => {
    const before = order().length;
    await policies.setPolicies(
      ["small", ...LARGE_NAMESPACES].map((each) => allowing(each, "nobody")),
      new Map([["clients/client", { a0: "a" }]]),
    );
    await pollUntil(async () => !(await connections()).some(Boolean), "all to be denied");

    expect(order().slice(before)).toEqual([["small", ...LARGE_NAMESPACES]]);
  });
});

/** Those whose rules the transaction has added. */
function namespacesIn(transaction: string): readonly string[] {
  return [...new Set(Array.from(transaction.matchAll(/"(\w+)\/clients ingress \d+"/g), ([, name = ""]) => name))];
}
