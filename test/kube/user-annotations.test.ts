/**
 * A tenant who may patch his own pods, and not their status, writes the annotations that the plugin records: nothing that
 * the node agent programs follows them. With a real API server, and the agent and plugin under their own roles.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { recordedAnnotation } from "../../src/model/recorded-annotations.ts";
import { annotationKey } from "../../src/plugin/annotations.ts";
import { type Agent, startAgent } from "../agent/agent.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { type KubePod, type KubeSite, openKubeSite } from "../support/kube-store-site.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";

const needs = [hostProblem() ?? apiServerProblem(), program("nft")];
const isPossible = needs.every((need) => need === undefined);
const testSite = testNeeding(...needs);
setDefaultTimeout(120_000);

const ROLE = readFileSync(join(import.meta.dir, `../../deploy/rbac/${identity.product}-node-kubernetes.yaml`), "utf8");
const TENANT = "mallory";
const FEATURES = { feature_control: { ip_addrs_no_ipam: true } };
const POLICY = { policy: { type: "k8s" }, ...FEATURES };
const [POD_IPS, IP_NATS] = [recordedAnnotation("podIPs"), recordedAnnotation("ipNATs")];
const CONTAINER_ID = recordedAnnotation("containerID");

/** Without the link `/var/run`. */
const RUN_DIRECTORY = identity.runDirectory.replace("/var/run/", "/run/");
const ATTACHMENTS = `${RUN_DIRECTORY}/attachments`;

/** The attack's table. */
const TARGETS = {
  "another machine": "10.99.0.66",
  "the API server": "198.51.100.10",
  "another pod, on another node": "10.60.200.1",
};

let site: KubeSite;
let agent: Agent;
let evil: KubePod & { readonly addresses: readonly string[] };
let outside: KubePod & { readonly addresses: readonly string[] };
let leaver: KubePod & { readonly addresses: readonly string[] };

async function attach(name: string, more: Parameters<KubeSite["makePod"]>[1]) {
  const pod = await site.makePod(name, more);
  return { ...pod, addresses: await site.add(pod, site.config(POLICY)) };
}

const asTenant = (...args: readonly string[]) =>
  site.server.kubectl([`--as=${TENANT}`, `--namespace=${TENANT}`, ...args]);
const annotate = (pod: string, values: Readonly<Record<string, string>>) =>
  asTenant("annotate", "pod", pod, "--overwrite", ...Object.entries(values).map((each) => each.join("=")));
/** As the kubelet does. */
const report = (pod: string, address: string) =>
  site.server.kubectl([
    ...["patch", "pod", pod, `--namespace=${TENANT}`, "--subresource=status", "--type=merge", "--patch"],
    JSON.stringify({ status: { podIP: address, podIPs: [{ ip: address }], phase: "Running" } }),
  ]);

async function programmed(): Promise<string> {
  const commands = [
    ["ip", "route"],
    ["ip", "-6", "route"],
    ["nft", "list", "ruleset"],
  ];
  return (await Promise.all(commands.map((command) => site.host.must(command)))).join("\n");
}

const nodeStatus = () => site.host.run([builtProgram(identity.adminTool), "node", "status"]);

/** The agent has decided about the claim: it has programmed it, or says that it has no effect. */
async function untilDecided(text: string): Promise<void> {
  const isDecided = async () => (await programmed()).includes(text) || (await nodeStatus()).stdout.includes(text);
  await pollUntil(isDecided, `a decision about ${text}`, 60_000);
}

beforeAll(async () => {
  if (!isPossible) return;
  site = await openKubeSite();
  await site.server.apply(ROLE);
  const { name, cniVersion, ...plugin } = site.config(POLICY);
  site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
  await site.server.createNamespace(TENANT);
  await site.server.apply(TENANT_ROLE);
  agent = await startAgent(site.host);
  const table = () => site.host.run(["nft", `list table inet ${identity.policyTable}`]);
  await pollUntil(async () => (await table()).code === 0, "the agent to write its table");
  evil = await attach("evil", { namespace: TENANT, metadata: { labels: { app: "evil" } } });
  await attach("db", { metadata: { labels: { app: "db" } } });
  await site.server.apply(POLICY_OF_DB);
  outside = await attach("outside", {
    namespace: TENANT,
    metadata: { annotations: { [annotationKey("ipAddrsNoIpam")]: '["203.0.113.50"]' } },
  });
  leaver = await attach("leaver", { namespace: TENANT, metadata: { labels: { app: "web" } } });
  const own = leaver.addresses[0]?.split("/")[0] ?? "";
  await pollUntil(async () => (await table()).stdout.includes(own), "the address of the pod in the set", 20_000);
  // What does not count is reported after 15 seconds: those of this pod pass beside the other tests.
  await annotate("leaver", { [POD_IPS]: "left,10.99.0.67/32", [CONTAINER_ID]: "junk" });
}, 180_000);
afterAll(() => site?.[Symbol.asyncDispose]());

describe("annotations that a tenant writes into his own pod", () => {
  testSite("he may not write the status of a pod", async () => {
    const permitted = await asTenant("auth", "can-i", "patch", "pods", "--subresource=status").catch(() => "no");
    expect(permitted).not.toContain("yes");
  });

  testSite(
    "podIPs lead no other address to the pod: another machine, the API server, a pod of another node",
    async () => {
      const addresses = Object.values(TARGETS);
      await annotate("evil", { [POD_IPS]: [...evil.addresses, ...addresses.map((each) => `${each}/32`)].join(",") });
      for (const address of addresses) await untilDecided(address);

      for (const address of addresses) expect(await programmed()).not.toContain(address);
      for (const own of evil.addresses) expect(await programmed()).toContain(own.replace(/\/\d+$/, ""));
    },
  );

  testSite(
    "ipNATs lead nothing to the pod, although it has the internal address: floating IPs are switched off",
    async () => {
      const internalIP = evil.addresses[0]?.split("/")[0] ?? "";
      const nats = Object.values(TARGETS).map((externalIP) => ({ internalIP, externalIP }));
      await annotate("evil", { [POD_IPS]: evil.addresses.join(","), [IP_NATS]: JSON.stringify(nats) });
      await untilDecided(`floating IP ${TARGETS["another machine"]}`);

      expect((await site.host.run(["nft", `list table inet ${identity.floatingTable}`])).code).not.toBe(0);
      const refused = readFileSync(site.host.view(`${RUN_DIRECTORY}/refused-claims.json`), "utf8");
      for (const { externalIP } of nats) expect(refused).toContain(`floating IP ${externalIP}`);
    },
  );

  testSite(
    "a pod of another node is a member of sets with the address that its kubelet reports, and no other",
    async () => {
      await site.makePod("web", {
        namespace: TENANT,
        metadata: { labels: { app: "web" } },
        spec: { nodeName: "node-2" },
      });
      await annotate("web", { [POD_IPS]: "192.168.44.9/32,203.0.113.7/32" });
      await report("web", "192.168.44.9");
      await pollUntil(
        async () => (await programmed()).includes("192.168.44.9"),
        "the reported address in the set",
        20_000,
      );

      expect(await programmed()).not.toContain("203.0.113.7");
    },
  );

  testSite(
    "no annotation takes a pod out of the sets of policies, nor keeps a route to an address of others",
    async () => {
      const own = leaver.addresses[0]?.split("/")[0] ?? "";
      const sets = () => site.host.must(["nft", `list table inet ${identity.policyTable}`]);
      const link = / dev (\S+)/.exec(await site.host.must(["ip", "route", "show", own]))?.[1] ?? "";
      await untilDecided("10.99.0.67");
      await report("leaver", own);
      await annotate("leaver", { [POD_IPS]: "left" });
      const isSeen = async () => !(await nodeStatus()).stdout.includes("10.99.0.67");
      await pollUntil(isSeen, "the agent to see the other annotation", 30_000);
      await site.host.must(["ip", "route", "add", "10.60.88.88", "dev", link, "proto", "86"]);
      const isRemoved = async () => !(await programmed()).includes("10.60.88.88");
      await pollUntil(isRemoved, "the route to another address to be removed", 30_000);

      expect(await sets()).toContain(own);
      expect(await site.host.must(["ip", "route", "show", own])).toContain(link);
    },
  );

  testSite("an address without IPAM counts on its node because its ADD recorded it on the host", async () => {
    expect(outside.addresses).toEqual(["203.0.113.50/32"]);
    await site.host.must(["ip", "route", "del", "203.0.113.50"]);
    await pollUntil(async () => (await programmed()).includes("203.0.113.50 dev"), "the route to be restored", 20_000);
  });

  testSite("an unreadable record does not keep stale routes of other pods", async () => {
    const garbage = await attach("garbage", { namespace: TENANT });
    await annotate("garbage", { [POD_IPS]: "garbage", [IP_NATS]: '[{"internalIP":7}]' });
    const link = /^10\.60\.\S+ dev (\S+)/m.exec(
      await site.host.must(["ip", "route", "show", evil.addresses[0]?.split("/")[0] ?? ""]),
    )?.[1];
    await site.host.must(["ip", "route", "add", "10.60.77.77", "dev", link ?? "", "proto", "86"]);
    const isRemoved = async () => !(await programmed()).includes("10.60.77.77");
    await pollUntil(isRemoved, "the stale route to be removed", 30_000);

    expect(garbage.addresses).toHaveLength(1);
    expect(await site.admin(["ipam", "check"])).not.toContain("unreadable");
  });

  describe("floating IPs", () => {
    const ON = { ...POLICY, feature_control: { ip_addrs_no_ipam: true, floating_ips: true } };
    const [RECORDED, CLAIMED] = ["198.51.100.80", "198.51.100.81"];
    const table = async () => (await site.host.run(["nft", `list table inet ${identity.floatingTable}`])).stdout;
    const install = (config: Parameters<KubeSite["config"]>[0]) => {
      const { name, cniVersion, ...plugin } = site.config(config);
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    };
    let pod: KubePod;
    let internalIP: string;
    /** What the agent of a former release writes. */
    let former: string;

    /** The former release has connected the pod, and recorded nothing on the host. */
    const restartAfterFormer = async () => {
      await agent.signal("TERM");
      await agent.ended;
      rmSync(site.host.view(ATTACHMENTS), { recursive: true, force: true });
      await site.host.run(["nft", `delete table inet ${identity.floatingTable}`]);
      await site.host.must(["nft", former]);
      agent = await startAgent(site.host);
    };
    const expectAdopted = async () => {
      const words = `Adopted from a former release: floating IP ${RECORDED} -> ${internalIP} of pod ${TENANT}/floating`;
      await pollUntil(() => agent.log().includes(words), words, 30_000);
      await pollUntil(async () => (await table()).includes("version 2"), "the table of this release", 30_000);
      expect(await table()).toContain(RECORDED);
      expect(await table()).not.toContain(CLAIMED);
    };

    testSite("with the switch on, only those that an ADD recorded lead to pods", async () => {
      install(ON);
      const annotations = { [annotationKey("floatingIPs")]: JSON.stringify([RECORDED]) };
      pod = await site.makePod("floating", { namespace: TENANT, metadata: { annotations } });
      const [own = ""] = await site.add(pod, site.config(ON));
      internalIP = own.replace(/\/\d+$/, "");
      await pollUntil(async () => (await table()).includes(RECORDED), "the floating IP in the kernel", 30_000);
      const nats = [RECORDED, CLAIMED].map((externalIP) => ({ internalIP, externalIP }));
      await annotate("floating", { [IP_NATS]: JSON.stringify(nats) });
      await untilDecided(CLAIMED);

      expect(await table()).not.toContain(CLAIMED);
      expect(await table()).toContain(RECORDED);
      former = (await table()).replaceAll("version 2", "version 1");
    });

    testSite(
      "what a former release left while the switch is off does not count, nor after a later switch-on",
      async () => {
        install(POLICY);
        await restartAfterFormer();
        await pollUntil(async () => (await table()) === "", "the table to be removed", 30_000);
        install(ON);
        const annotations = { [annotationKey("floatingIPs")]: '["198.51.100.82"]' };
        const later = await site.makePod("later", { namespace: TENANT, metadata: { annotations } });
        await site.add(later, site.config(ON));
        await pollUntil(
          async () => (await table()).includes("198.51.100.82"),
          "the agent to follow the switch",
          60_000,
        );

        expect(await table()).not.toContain(RECORDED);
        expect(agent.log()).not.toContain("Adopted");
        await site.del(later, site.config(ON));
      },
    );

    testSite("those of a former release are adopted while the switch is on, also after a rollback", async () => {
      await restartAfterFormer();
      await expectAdopted();
      await restartAfterFormer();
      await expectAdopted();
    });

    testSite("node restore leaves them to the agent", async () => {
      const { stdout } = await site.host.run([builtProgram(identity.adminTool), "node", "restore"]);
      expect(stdout).toContain("they are in place");
    });

    testSite("DEL removes them", async () => {
      await site.del(pod, site.config(ON));
      await pollUntil(async () => (await table()) === "", "the floating IP to be removed", 30_000);
    });
  });

  testSite("DEL removes what was recorded on the host", async () => {
    const again = site.config(POLICY);
    await site.add(outside, again);
    const records = () => readdirSync(site.host.view(ATTACHMENTS)).filter((file) => !file.startsWith("."));
    expect(records()).toHaveLength(1);
    await site.del(outside, again);
    expect(records()).toEqual([]);
  });
});

const TENANT_ROLE = JSON.stringify({
  apiVersion: "v1",
  kind: "List",
  items: [
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: { name: TENANT, namespace: TENANT },
      rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["create", "get", "list", "patch", "update"] }],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: TENANT, namespace: TENANT },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: TENANT },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: TENANT }],
    },
  ],
});

const POLICY_OF_DB = JSON.stringify({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "db", namespace: "red" },
  spec: {
    podSelector: { matchLabels: { app: "db" } },
    ingress: [{ from: [{ namespaceSelector: {}, podSelector: { matchLabels: { app: "web" } } }] }],
  },
});
