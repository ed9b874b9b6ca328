/**
 * An address that is used again does not inherit what its former owner was allowed on another node: the nodes forget its
 * connections, and another namespace does not get the address while they may be tracked.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { openUdpClient, serveUdp, type UdpClient } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "./policy-site.ts";
import { connect, routeTo } from "./two-nodes.ts";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);
const PORT = 5300;
/** Of IPv4; that of IPv6 is the next. An attacker has to guess it. */
const CLIENT_PORT = 4444;
const SILENCE_MILLISECONDS = 300;

describe("an address that is used again", () => {
  let router: Host;
  let first: PolicySite;
  let second: PolicySite;
  let database: PodEnd;
  let server: Disposable;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    router = await openHost();
    first = await openPolicySite({ node: "node-1" });
    second = await openPolicySite({ node: "node-2", sharedStore: first.site.store });
    await connect(router, first.site.host, 1);
    await connect(router, second.site.host, 2);
    for (const name of ["shop", "mallory"]) await first.labelNamespace(name, { ns: name });
    database = await second.addPod("shop/db", { app: "db" });
    await routeTo(router, database, 2);
    server = await serveUdp(database.netns, "db", PORT);
    await first.setPolicies([
      {
        namespace: "shop",
        name: "db",
        spec: {
          selector: "app == 'db'",
          types: ["Ingress"],
          ingress: [{ action: "Allow", source: { selector: "app == 'web'" } }],
        },
      },
    ]);
  });
  afterAll(async () => {
    server?.[Symbol.dispose]();
    await second?.[Symbol.asyncDispose]();
    await first?.[Symbol.asyncDispose]();
    await router?.[Symbol.asyncDispose]();
  });

  const clientsOf = (netns: string): Promise<readonly UdpClient[]> =>
    Promise.all(
      ["0.0.0.0", "::"].map((any, index) => openUdpClient(netns, any, SILENCE_MILLISECONDS, CLIENT_PORT + index)),
    );
  const ask = (clients: readonly UdpClient[]) =>
    Promise.all(
      clients.map(async (client, index) => (await client.ask(database.addresses[index] ?? "", PORT)).split(" ")[0]),
    );
  const close = (clients: readonly UdpClient[]) => {
    for (const client of clients) client[Symbol.dispose]();
  };

  /** A pod that the policy lets in talks with the database of the other node, and goes. Returns its addresses. */
  async function talkAndGo(name: string): Promise<PodEnd["addresses"]> {
    const web = await first.addPod(name, { app: "web" });
    await routeTo(router, web, 1);
    await Promise.all([first.untilApplied(), second.untilApplied()]);
    const clients = await clientsOf(web.netns);
    await pollUntil(async () => (await ask(clients)).join() === "db,db", "the database to answer");
    close(clients);
    await first.site.quietly("DEL", web.pod, { config: first.site.config({ nodename: "node-1" }) });
    return web.addresses;
  }

  /** ADD of a pod of the first node that asks for these addresses. */
  async function addAt(name: string, ips: PodEnd["addresses"]) {
    const [namespace = "", own = ""] = name.split("/");
    const pod = await first.site.makePod({ args: `K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${own}` });
    const config = first.site.config({ nodename: "node-1", runtimeConfig: { ips } });
    return { pod, netns: first.site.host.view(pod.netns), finished: await first.site.call("ADD", pod, { config }) };
  }

  test("is refused to another namespace while it rests, with the time", async () => {
    const addresses = await talkAndGo("shop/web-1");
    const { finished } = await addAt("mallory/evil", addresses);

    expect(JSON.parse(finished.stdout)).toMatchObject({
      code: 11,
      msg: expect.stringMatching(/"10\.50\..*it was released by namespace "shop" and rests for another 1[5-8]\d s/),
    });
  });

  test("does not get through by the connections of its former owner, whose agents forget them", async () => {
    const addresses = await talkAndGo("shop/web-2");
    const { pod, netns, finished } = await addAt("shop/other", addresses);
    expect(finished.code).toBe(0);
    await first.labelPod("shop/other", { app: "other" });
    await Promise.all([first.untilApplied(), second.untilApplied()]);
    const clients = await clientsOf(netns);
    const isSilent = async () => (await ask(clients)).join() === "silence,silence";
    // The agent forgets a moment after it has written the rules.
    await pollUntil(isSilent, "the connections to be forgotten", 3_000);
    expect([await isSilent(), await isSilent()]).toEqual([true, true]);
    close(clients);
    await first.site.quietly("DEL", pod, { config: first.site.config({ nodename: "node-1" }) });
  });

  test("a pod whose labels change keeps its connections", async () => {
    const web = await first.addPod("shop/web-3", { app: "web" });
    await routeTo(router, web, 1);
    await Promise.all([first.untilApplied(), second.untilApplied()]);
    const clients = await clientsOf(web.netns);
    await pollUntil(async () => (await ask(clients)).join() === "db,db", "the database to answer");
    await first.labelPod("shop/web-3", { app: "former" });
    await Promise.all([first.untilApplied(), second.untilApplied()]);
    // Another one goes, so that the agents look at their connections.
    await talkAndGo("shop/web-4");
    await Promise.all([first.untilApplied(), second.untilApplied()]);

    expect(await ask(clients)).toEqual(["db", "db"]);
    close(clients);
  });
});
