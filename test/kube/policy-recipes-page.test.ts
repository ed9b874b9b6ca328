/**
 * The recipes for Kubernetes of docs/policy-recipes.md: kubectl applies each of them to a real API server, the node agent under its role
 * enforces it, and packets of pods and of other machines show what it does. The recipes for podman: test/clients/policy-recipes-page.test.ts.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { identity } from "../../src/identity.ts";
import { startAgent } from "../agent/agent.ts";
import { askFromAddress } from "../support/ask-from-address.ts";
import { documentsOfPage, openDocsPage } from "../support/docs-page.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { type KubeSite, NODE, openKubeSite } from "../support/kube-store-site.ts";
import { askTcpWithin, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { SSH_RULES, withoutFailsafe } from "../support/ssh-recipe.ts";

const needs = [hostProblem() ?? apiServerProblem(), program("nft"), program("curl")];
const testPage = testNeeding(...needs);
const ROLE = readFileSync(join(import.meta.dir, `../../deploy/rbac/${identity.product}-node-kubernetes.yaml`), "utf8");
const POLICY = { policy: { type: "k8s" } };
const PATIENCE_MILLISECONDS = 200;

const page = openDocsPage("policy-recipes.md");
const documents = documentsOfPage("policy-recipes.md");

/** Who listens: its pod or host, and its port. */
const SERVERS = { web: 80, database: 5432, dns: 53, ssh: 22 } as const;
const LABELS = {
  "shop/web": { role: "web" },
  "shop/database": { role: "database" },
  "shop/client": { role: "client" },
};
const OTHERS = { "other/stranger": {}, "kube-system/dns": { "k8s-app": "kube-dns" } };
const HOST_ADDRESS = "192.0.2.2";

type Reached = Readonly<Record<`${string} -> ${keyof typeof SERVERS}`, "open" | "closed">>;

/** Without any policy; each recipe names what it closes. */
const OPEN: Reached = {
  "shop/client -> web": "open",
  "shop/client -> database": "open",
  "shop/client -> dns": "open",
  "shop/web -> database": "open",
  "other/stranger -> web": "open",
  "other/stranger -> database": "open",
  "192.0.2.10 -> web": "open",
  "192.0.2.99 -> web": "open",
  "192.0.2.10 -> ssh": "open",
  "192.0.2.99 -> ssh": "open",
};
const CLOSED: Readonly<Record<string, readonly (keyof typeof OPEN)[]>> = {
  "Default deny": ["shop/client -> database", "other/stranger -> database"],
  "Allow DNS only": ["shop/client -> web", "shop/client -> database", "shop/web -> database"],
  "Isolate a network or a namespace": [
    ...(["other/stranger -> web", "other/stranger -> database"] as const),
    ...(["192.0.2.10 -> web", "192.0.2.99 -> web"] as const),
  ],
  "A published port for some addresses": ["shop/client -> web", "other/stranger -> web", "192.0.2.99 -> web"],
};

describe("the policy recipes for Kubernetes", () => {
  let site: KubeSite;
  const namespaces = new Map<string, string>();
  const addresses = new Map<string, string>([["ssh", HOST_ADDRESS]]);
  const listeners: Disposable[] = [];

  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openKubeSite();
    await site.host.must(["sh", "-ec", OUTSIDE]);
    // As its kubelet does.
    const status = JSON.stringify({ status: { addresses: [{ type: "InternalIP", address: HOST_ADDRESS }] } });
    await site.server.kubectl(["patch", "node", NODE, "--subresource=status", "--type=merge", `--patch=${status}`]);
    const { name, cniVersion, ...plugin } = site.config(POLICY);
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    await site.server.apply(ROLE);
    for (const namespace of ["shop", "other", "kube-system"]) await site.server.createNamespace(namespace);
    await startAgent(site.host);
    const table = () => site.host.run(["nft", `list table inet ${identity.policyTable}`]);
    await pollUntil(async () => (await table()).code === 0, "the agent to write its table");
    for (const [full, labels] of Object.entries({ ...LABELS, ...OTHERS })) await attach(full, labels);
    listeners.push(serveTcp(site.host.netns, "ssh", SERVERS.ssh));
  }, 120_000);
  afterAll(async () => {
    for (const listener of listeners) listener[Symbol.dispose]();
    await site?.[Symbol.asyncDispose]();
  });

  async function attach(full: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const [namespace = "", name = ""] = full.split("/");
    const pod = await site.makePod(name, { namespace, metadata: { labels } });
    const [address = ""] = await site.add(pod, site.config(POLICY));
    const netns = site.host.view(pod.netns);
    namespaces.set(full, netns);
    addresses.set(name, address.split("/")[0] ?? "");
    const port = Object.entries(SERVERS).find(([server]) => server === name)?.[1];
    if (port !== undefined) listeners.push(serveTcp(netns, name, port));
  }

  async function reach(from: string, server: string): Promise<string> {
    const [address = "", port = 0] = [addresses.get(server), SERVERS[server as keyof typeof SERVERS]];
    const netns = namespaces.get(from);
    const reply = await (netns === undefined
      ? askFromAddress(site.host, { netns: "outside", source: from, target: address, port })
      : askTcpWithin(PATIENCE_MILLISECONDS, netns, address, port));
    if (reply === "silence") return "closed";
    return reply.startsWith(`${server} `) ? "open" : reply;
  }

  async function soon(closed: readonly (keyof typeof OPEN)[]): Promise<void> {
    const expected = { ...OPEN, ...Object.fromEntries(closed.map((way) => [way, "closed"])) };
    let found: Readonly<Record<string, string>> = {};
    const ways = Object.keys(OPEN).map((way) => [way, ...way.split(" -> ")] as const);
    const look = async () => {
      found = Object.fromEntries(
        await Promise.all(ways.map(async ([way, from = "", to = ""]) => [way, await reach(from, to)])),
      );
      return Bun.deepEquals(found, expected);
    };
    await pollUntil(look, "the packets to pass as expected").catch(() => expect(found).toEqual(expected));
  }

  testPage("without a policy everything is open", () => soon([]));

  for (const [title, closed] of Object.entries(CLOSED)) {
    testPage(`closes what it says, and nothing else: ${title}`, async () => {
      const yaml = documents.get(title) ?? "";
      await site.server.apply(yaml);
      await soon(closed);
      await site.server.kubectl(["delete", "--filename=-"], yaml);
      await soon([]);
    });
  }

  testPage("closes SSH of a node to everybody but administrators, by the same commands as on podman", async () => {
    const environment = {
      ...{ DATASTORE_TYPE: "kubernetes", KUBECONFIG: site.server.adminKubeconfig },
      PATH: `${dirname(builtProgram())}:${process.env["PATH"]}`,
    };
    const type = (title: string, replacing: Readonly<Record<string, string>> = {}) =>
      page.type(title, { host: site.host, environment, replacing });
    const [rule1, rule2] = SSH_RULES;

    const wrong = await type("Protect SSH on the host", { "nets: [192.0.2.10/32]": "nets: [192.0.2.11/32]" });
    expect(withoutFailsafe(wrong)).toEqual([`denied by ${rule2}`, `denied by ${rule2}`]);
    const right = await type("Protect SSH on the host");
    expect(withoutFailsafe(right)).toEqual([`allowed by ${rule1}`, `denied by ${rule2}`]);
    await soon([]);
    await type("Close SSH to everybody else");
    await soon(["192.0.2.99 -> ssh"]);
    await type("Open SSH again");
    await soon([]);
  });

  testPage("are all tried", () => {
    expect([...documents.keys()]).toEqual(Object.keys(CLOSED));
  });
});

const OUTSIDE = `
ip netns add outside
ip link add uplink type veth peer name eth0 netns outside
ip addr add ${HOST_ADDRESS}/24 dev uplink
ip link set uplink up
for address in 192.0.2.10 192.0.2.99; do ip -n outside addr add $address/24 dev eth0; done
ip -n outside link set eth0 up
ip -n outside route add default via ${HOST_ADDRESS}
`;
