/** The connections of a removed pod do not reach the next pod with its address, whatever policy says about it. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { type Agent, launchAgent } from "../agent/agent.ts";
import { hostProblem } from "../support/host.ts";
import { insideNetns, openUdpClient, serveUdp, type UdpClient } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { type CallOptions, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";

const PORT = 5300;
const CLIENT_PORT = 5400;
const KEY = resourceKey("networkpolicies", { namespace: "default", name: "isolate" });
/** Of the removed pod and of its successor. */
const ADDRESSES = ["10.50.7.7", "fd50::7:7"];

function policy(ingress: readonly { readonly action: "Allow" }[]) {
  const made = networkPolicy.make(
    { name: "isolate", namespace: "default" },
    { tier: "default", types: ["Ingress"], ingress: [...ingress] },
  );
  return { kind: "put", key: KEY, value: networkPolicy.write(made) } as const;
}

/** For both families, on a port of its own. */
async function openSocket(netns: string, port: number) {
  const heard: string[] = [];
  const data = (_socket: unknown, _data: unknown, _port: number, from: string) => void heard.push(from);
  const socket = await insideNetns(netns, () => Bun.udpSocket({ hostname: "::", port, socket: { data } }));
  return {
    heard,
    send: (address: string, to: number) =>
      void socket.send("x", to, address.includes(":") ? address : `::ffff:${address}`),
    close: () => socket.close(),
  };
}

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);

describe("the connections of a removed pod", () => {
  let site: PluginSite;
  let agent: Agent;
  let peer: Awaited<ReturnType<typeof attach>>;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPluginSite("embedded");
    const { name, cniVersion, ...plugin } = site.config();
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    agent = launchAgent(site.host);
    await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the agent to serve");
    peer = await attach();
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const attach = async (options?: CallOptions) => {
    const pod: Pod = await site.makePod();
    const result = await site.add(pod, options);
    const addresses = result.ips.map(({ address }) => address.split("/")[0] ?? "");
    return { pod, result, addresses, netns: site.host.view(pod.netns) };
  };
  type Attached = Awaited<ReturnType<typeof attach>>;
  const attachAtAddress = () => attach({ config: { ...site.config(), runtimeConfig: { ips: ADDRESSES } } });
  const rules = async () => (await site.host.run(["nft", `list table inet ${identity.policyTable}`])).stdout;
  /** Established flows stay when the policy closes. */
  const open = async () => {
    await site.store.put([policy([{ action: "Allow" }])]);
    await pollUntil(async () => /isolate ingress 0/.test(await rules()), "the policy to open");
  };
  const close = async () => {
    await site.store.put([policy([])]);
    await pollUntil(async () => {
      const text = await rules();
      return text !== "" && !/isolate ingress 0/.test(text);
    }, "the policy to close");
  };
  const hasInterface = async (attached: Attached) =>
    (await rules()).includes(attached.result.interfaces[0]?.name ?? "?");

  /** A flow to the pod and one from it in each family, both used in both directions; `removal` ends the pod. */
  const reachesSuccessor = async (removal: (pod: Attached) => Promise<void>) => {
    await open();
    const old = await attachAtAddress();
    await pollUntil(() => hasInterface(old), "the rules of the pod");
    const clients: readonly UdpClient[] = [await openUdpClient(peer.netns), await openUdpClient(peer.netns, "::")];
    const served = await serveUdp(old.netns, "old", PORT);
    for (const [index, address] of ADDRESSES.entries()) {
      expect(await clients[index]?.ask(address, PORT)).toStartWith("old");
    }
    served[Symbol.dispose]();
    const back = await openSocket(peer.netns, PORT);
    const out = await openSocket(old.netns, CLIENT_PORT);
    for (const address of peer.addresses) out.send(address, PORT);
    await pollUntil(() => back.heard.length === 2, "the packets of the pod");
    for (const address of ADDRESSES) back.send(address, CLIENT_PORT);
    await pollUntil(() => out.heard.length === 2, "the answers to the pod");
    out.close();
    await close();
    await removal(old);

    const next = await attachAtAddress();
    expect(next.addresses).toEqual(ADDRESSES);
    await pollUntil(() => hasInterface(next), "the rules of the next pod");
    const server = await serveUdp(next.netns, "next", PORT);
    const listener = await openSocket(next.netns, CLIENT_PORT);
    for (const address of ADDRESSES) back.send(address, CLIENT_PORT);
    const answers: string[] = [];
    // Each waits for a while: long enough for the packets before it.
    for (const [index, address] of ADDRESSES.entries()) {
      answers.push((await clients[index]?.ask(address, PORT))?.split(" ")[0] ?? "");
    }
    for (const socket of [listener, back]) socket.close();
    server[Symbol.dispose]();
    for (const client of clients) client[Symbol.dispose]();
    await site.quietly("DEL", next.pod);
    return { answers, heard: listener.heard };
  };
  const CLOSED = { answers: ["silence", "silence"], heard: [] };

  test("end with DEL, with the runtime's result and without", async () => {
    expect(await reachesSuccessor(({ pod }) => site.quietly("DEL", pod))).toEqual(CLOSED);
    const byResult = ({ pod, result }: Attached) =>
      site.quietly("DEL", pod, { config: site.config({ prevResult: result }) });
    expect(await reachesSuccessor(byResult)).toEqual(CLOSED);
  });

  test("end with DEL also if the links were removed before, by whatever", async () => {
    const linksFirst = async ({ pod, result }: Attached) => {
      await site.host.must(["ip", "link", "delete", result.interfaces[0]?.name ?? ""]);
      await site.quietly("DEL", pod);
    };
    expect(await reachesSuccessor(linksFirst)).toEqual(CLOSED);
  });

  test("end with GC", async () => {
    const collect = async ({ pod }: Attached) => {
      const valid = [{ containerID: peer.pod.containerId, ifname: "eth0" }];
      await site.quietly("GC", pod, { config: site.config({ "cni.dev/valid-attachments": valid }) });
    };
    expect(await reachesSuccessor(collect)).toEqual(CLOSED);
  });

  test("end with DEL in a process of its own, after the agent was killed", async () => {
    const alone = async ({ pod }: Attached) => {
      await agent.signal("KILL");
      await agent.ended;
      await site.quietly("DEL", pod);
      agent = launchAgent(site.host);
    };
    expect(await reachesSuccessor(alone)).toEqual(CLOSED);
  });
});
