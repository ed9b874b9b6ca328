/** Changes under load: right within a second, no allowed connection lost, established connections kept. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { hostProblem } from "../support/host.ts";
import { askTcpWithin } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { type Flow, openFlow, serveEcho } from "./flow.ts";
import { type End, openPolicySite, type PolicySite, type WrittenPolicy } from "./policy-site.ts";
import { serve } from "./probes.ts";

const PORT = 80;
const ECHO_PORT = 7;
const WITHIN_MILLISECONDS = 1_000;
const PATIENCE_MILLISECONDS = 100;

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);

function clients(...sources: readonly string[]): WrittenPolicy {
  const rules = sources.map((selector) => ({ action: "Allow" as const, source: { selector } }));
  return {
    namespace: "x",
    name: "clients",
    spec: { selector: "app == 'server'", types: ["Ingress"], ingress: rules },
  };
}

describe("policy under change", () => {
  let policies: PolicySite;
  let server: End;
  let client: End;
  let other: End;
  let outside: End;
  let listeners: readonly Disposable[];
  const flows: Flow[] = [];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policies = await openPolicySite();
    await policies.labelNamespace("x", { team: "one" });
    await policies.labelNamespace("y", { team: "two" });
    server = await policies.addPod("x/server", { app: "server" });
    client = await policies.addPod("x/client", { app: "client" });
    other = await policies.addPod("y/other");
    outside = policies.ends.get("outside") ?? server;
    listeners = [...(await serve(server, [PORT])), serveEcho(server.netns, ECHO_PORT)];
    await policies.setPolicies([clients("app == 'client'")]);
    await policies.untilApplied();
    for (const address of server.addresses) flows.push(await openFlow(client.netns, address, ECHO_PORT));
  });
  afterAll(async () => {
    for (const each of [...flows, ...(listeners ?? [])]) each[Symbol.dispose]();
    await policies?.[Symbol.asyncDispose]();
  });

  const connects = async (from: End) =>
    (await askTcpWithin(PATIENCE_MILLISECONDS, from.netns, server.addresses[0], PORT)).startsWith(server.name);
  const soon = (from: End, expected: boolean) =>
    pollUntil(async () => (await connects(from)) === expected, `${from.name}: ${expected}`, WITHIN_MILLISECONDS);
  const established = () => Promise.all(flows.map((flow) => flow.works()));

  test("a label of a running pod closes and opens it within a second, and its established connections are kept", async () => {
    expect([await connects(client), await connects(other), await established()]).toEqual([true, false, [true, true]]);

    await policies.labelPod("x/client", { app: "former" });
    await soon(client, false);
    expect(await established()).toEqual([true, true]);
    await policies.labelPod("x/client", { app: "client" });
    await soon(client, true);
  });

  test("a relabelled server leaves and joins the policy", async () => {
    await policies.labelPod("x/server", {});
    await soon(other, true);
    await policies.labelPod("x/server", { app: "server" });
    await soon(other, false);
    expect(await established()).toEqual([true, true]);
  });

  test("a relabelled namespace closes and opens its pods, one without labels included", async () => {
    const spec = { source: { namespaceSelector: "team == 'two'" }, action: "Allow" as const };
    await policies.setPolicies([{ ...clients(), spec: { ...clients().spec, ingress: [spec] } }]);
    await soon(other, true);
    await policies.labelNamespace("y", { team: "three" });
    await soon(other, false);
    await policies.labelNamespace("y", { team: "two" });
    await soon(other, true);
    expect([await connects(client), await established()]).toEqual([false, [true, true]]);
  });

  test("a policy is edited a hundred times: no allowed connection is lost, no denied one passes", async () => {
    await policies.setPolicies([clients("app == 'client'")]);
    await soon(client, true);
    await soon(other, false);
    let isEditing = true;
    const seen = { allowed: 0, lost: 0, leaked: 0 };
    const connecting = async () => {
      while (isEditing) {
        // With patience: a lost packet would be sent again after a second only.
        const reply = await askTcpWithin(900, client.netns, server.addresses[0], PORT);
        if (reply.startsWith(server.name)) seen.allowed += 1;
        else seen.lost += 1;
      }
    };
    const intruding = async () => {
      while (isEditing) if (await connects(other)) seen.leaked += 1;
    };
    const load = Promise.all([connecting(), connecting(), intruding()]);
    for (let edit = 0; edit < 100; edit += 1) {
      await policies.setPolicies([clients(...(edit % 2 === 0 ? [`app == 'nobody${edit}'`] : []), "app == 'client'")]);
    }
    await policies.untilApplied();
    isEditing = false;
    await load;

    expect(seen).toEqual({ allowed: expect.any(Number), lost: 0, leaked: 0 });
    expect(seen.allowed).toBeGreaterThan(10);
    expect(await established()).toEqual([true, true]);
  });

  test("a thousand pods of other nodes are selected, and one more within a second", async () => {
    await policies.setPolicies([clients("app == 'many'")]);
    await soon(client, false);
    const all = Array.from({ length: 1000 }, (_, index) =>
      remotePod(`pod${index}`, `10.90.${index >> 8}.${index & 255}`),
    );
    for (let start = 0; start < all.length; start += 100) await policies.store.commit(all.slice(start, start + 100));
    expect(await connects(outside)).toBe(false);
    await policies.store.commit([remotePod("last", outside.addresses[0])]);
    await soon(outside, true);
    await policies.labelPod("x/client", { app: "many" });
    await soon(client, true);
    expect(await established()).toEqual([true, true]);
  });
});

function remotePod(name: string, address: string) {
  const label = identity.labelPrefix;
  const labels = { app: "many", [`${label}namespace`]: "x", [`${label}orchestrator`]: "k8s" };
  const metadata = { name: `node--2-k8s-${name}-eth0`, namespace: "x", labels };
  const spec = {
    ...{ orchestrator: "k8s", node: "node-2", pod: name, endpoint: "eth0", containerID: name, profiles: ["kns.x"] },
    ...{ ipNetworks: [`${address}/32`], interfaceName: `${identity.interfacePrefix}${name}`.slice(0, 15) },
  };
  const value = workloadEndpoint.write(workloadEndpoint.make(metadata, spec));
  return { kind: "put", key: ENDPOINT.key(metadata), value } as const;
}
