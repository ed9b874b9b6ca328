/** The installation on a node by the pod of the node agent, against a real API server. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import { nodeUid, requestAccountToken } from "../../src/agent/node-setup/account-token.ts";
import { keepPluginAccess } from "../../src/agent/node-setup/keep-plugin-access.ts";
import { refuseUnmovedStorage } from "../../src/agent/node-setup/refuse-unmoved-storage.ts";
import { API_VERSION, apiVersionOf, FORMER_API, identity } from "../../src/identity.ts";
import type { KubeRequest } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { clusterObjects } from "../../src/kube/objects.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { createFormerDefinitions, FORMER_KINDS } from "../support/older-cluster/former-definitions.ts";
import { pollUntil } from "../support/poll.ts";
import { isForbidden } from "../support/role-use.ts";
import { CONFIG_DIRECTORY, type InstallSite, KUBECONFIG, NETWORK_LIST, NODE, openInstallSite } from "./node-install.ts";

const problem = hostProblem() ?? apiServerProblem();
const test = testNeeding(problem);
const { product, environmentPrefix, stateDirectory } = identity;
const BIN = "/opt/cni/bin";
const POOLS = { [`${environmentPrefix}DEFAULT_POOLS`]: '[{"cidr":"10.70.0.0/16"},{"cidr":"fd70::/64"}]' };

let site: InstallSite;
beforeAll(async () => {
  if (problem === undefined) site = await openInstallSite();
}, 180_000);
afterAll(() => site?.[Symbol.asyncDispose]());

const modeOf = (path: string) => (lstatSync(site.host.view(path)).mode & 0o777).toString(8);
const own = () => JSON.parse(site.read(NETWORK_LIST) ?? "").plugins[0];
const names = (resource: string) => site.server.kubectl(["get", resource, "--output=name"]);

describe("vendor-node install", () => {
  test("refuses what it cannot install, names the remedy, and changes nothing", async () => {
    const before = await site.host.must(["find", CONFIG_DIRECTORY, BIN, stateDirectory, "/etc/cni"]).catch(String);
    const refusals = [
      [{ config: "{" }, 'the network config "/tmp/config": it is not valid JSON'],
      [{ config: "{}" }, `do not have one entry of type "${product}"`],
      [{ plugin: { mtu: "big" } }, '"mtu"'],
      [{ environment: { NODE_NAME: "" } }, "NODE_NAME is not set"],
      [{ environment: { ETCD_ENDPOINTS: "http://<ETCD>:2379" } }, "is the placeholder"],
      [{ environment: { [`${environmentPrefix}DEFAULT_POOLS`]: '[{"cidr":"10.0.0.0/99"}]' } }, "spec.cidr"],
      [{ environment: { [`${environmentPrefix}PLUGIN_ACCOUNT`]: "nobody" } }, "serviceaccounts/token"],
    ] as const;
    for (const [input, message] of refusals) {
      const { code, stderr } = await site.inPod("install", input);
      expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
    }
    const after = await site.host.must(["find", CONFIG_DIRECTORY, BIN, stateDirectory, "/etc/cni"]).catch(String);
    expect(after).toBe(before);
  });

  test("refuses a cluster whose resources are still where earlier releases stored them", async () => {
    const means = { environment: {}, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() };
    const client = await openKubeClient({ kubeconfigs: [site.server.adminKubeconfig] }, means);
    const objects = clusterObjects(client);
    await createFormerDefinitions(
      objects,
      FORMER_KINDS.filter(({ kind }) => kind === "ClusterInformation"),
    );
    const information = {
      apiVersion: apiVersionOf(FORMER_API),
      kind: "ClusterInformation",
      metadata: { name: "default" },
      spec: { datastoreReady: true },
    };
    const path = `/apis/${apiVersionOf(FORMER_API)}/clusterinformations`;
    await objects.create(path, information);

    const { code, stderr } = await site.inPod("install", { environment: POOLS });
    expect([code, stderr]).toEqual([1, expect.stringContaining(`"${identity.adminTool} upgrade apply"`)]);
    expect([await names("ippools"), await names(`clusterinformations.${identity.apiGroup}`)]).toEqual(["", ""]);
    expect(site.read(NETWORK_LIST)).toBeUndefined();

    // As the upgrade leaves it.
    await objects.patch(`${path}/default`, { spec: { datastoreReady: false } });
    await refuseUnmovedStorage(client);
    // And unlocked by somebody later.
    await objects.patch(`${path}/default`, { spec: { datastoreReady: true } });
    await expect(refuseUnmovedStorage(client)).rejects.toMatchObject({ kind: "not-ready" });
    const block = { apiVersion: API_VERSION, kind: "IPAMBlock", metadata: { name: "10-70-0-0-26" } };
    const blocks = `/apis/${API_VERSION}/ipamblocks`;
    const ordinals = [...Array(64).keys()];
    const addresses = { allocations: ordinals.map(() => null), unallocated: ordinals, attributes: [] };
    await objects.create(blocks, { ...block, spec: { cidr: "10.70.0.0/26", ...addresses } });
    await refuseUnmovedStorage(client);

    await objects.remove(`${blocks}/${block.metadata.name}`);
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await objects.remove(`${definitions}/clusterinformations.${FORMER_API.group}`);
    await pollUntil(async () => (await objects.read(path)) === undefined, "the end of the former definition");
    await client.close();
  });

  test("installs plugins, kubeconfig and network config on a new node, and keeps what was there", async () => {
    site.host.writeFile(`${BIN}/portmap`, "portmap of others");
    site.host.writeFile(`${CONFIG_DIRECTORY}/05-other.conf`, '{"type":"ptp"}');
    const former = JSON.stringify({ plugins: [{ type: "flannel", delegate: { type: product } }] });
    site.host.writeFile(`${CONFIG_DIRECTORY}/10-canal.conflist`, former);
    await site.host.must(["mkdir", "-p", "/etc/NetworkManager/conf.d"]);
    await site.host.must(["rm", "-rf", "/etc/systemd/network"]);
    const audit = site.server.startAudit();
    const formerName = { [`${environmentPrefix}FORMER_NETWORK_CONFIG`]: "10-canal.conflist" };
    const { code, stderr } = await site.inPod("install", { environment: { ...POOLS, ...formerName } });
    expect([code, stderr]).toEqual([0, expect.stringContaining("Initialized the datastore")]);
    expect(existsSync(site.host.view(`${CONFIG_DIRECTORY}/10-canal.conflist`))).toBe(false);
    expect(site.read(`${CONFIG_DIRECTORY}/10-canal.conflist.former`)).toBe(former);

    expect(lstatSync(site.host.view(`${BIN}/${product}`)).size).toBeGreaterThan(10_000_000);
    expect(modeOf(`${BIN}/${product}`)).toBe("755");
    for (const name of [identity.ipamType, "host-local", "portmap", "bandwidth", identity.adminTool]) {
      expect(readlinkSync(site.host.view(`${BIN}/${name}`))).toBe(product);
    }
    expect([modeOf(KUBECONFIG), modeOf(NETWORK_LIST)]).toEqual(["600", "600"]);
    expect(own()).toMatchObject({
      nodename: NODE,
      kubernetes: { kubeconfig: KUBECONFIG },
      log_file_path: `${identity.logDirectory}/cni/cni.log`,
    });
    expect(site.read(`/etc/NetworkManager/conf.d/${product}.conf`)).toContain(
      `interface-name:${identity.interfacePrefix}*`,
    );
    expect(existsSync(site.host.view("/etc/systemd/network"))).toBe(false);
    expect(site.read(`${stateDirectory}/replaced${BIN}/portmap`)).toBe("portmap of others");

    expect(stderr).toContain(`"${CONFIG_DIRECTORY}/05-other.conf" (ptp) comes before "${NETWORK_LIST}"`);
    expect(stderr).toContain(`"${BIN}/loopback" is missing`);
    expect((await names("ippools")).trim().split("\n").sort()).toEqual(
      ["ipv4", "ipv6"].map((family) => `ippool.${identity.apiGroup}/default-${family}-ippool`),
    );
    expect(audit.requests().filter(isForbidden)).toEqual([]);
  });

  test("is never seen half done, however often it runs", async () => {
    const installed = async () => {
      for (const mtu of [1400, 1410, 1420]) {
        const { code, stderr } = await site.inPod("install", { plugin: { mtu } });
        expect([code, stderr]).toEqual([0, expect.stringContaining(`Wrote "${KUBECONFIG}"`)]);
      }
    };
    let reads = 0;
    const seen = new Set<unknown>();
    const stop = new AbortController();
    const reader = (async () => {
      while (!stop.signal.aborted) {
        seen.add(own().mtu);
        expect(JSON.parse(site.read(KUBECONFIG) ?? "").users[0].user.token).toContain(".");
        expect(lstatSync(site.host.view(`${BIN}/portmap`)).isSymbolicLink()).toBe(true);
        reads += 1;
        await Bun.sleep(0);
      }
    })();
    await installed().finally(() => stop.abort());
    await reader;

    expect([...seen]).toEqual([undefined, 1400, 1410, 1420]);
    expect(reads).toBeGreaterThan(100);
  });

  test("gives the plugin an access of its own, and the plugin logs to its file and to stderr", async () => {
    await site.server.createNamespace("red");
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "red" } };
    const spec = { nodeName: NODE, containers: [{ name: "main", image: "none" }] };
    await site.server.apply(JSON.stringify({ ...pod, spec }));
    await site.host.must(["ip", "netns", "add", "vt-web"]);
    const audit = site.server.startAudit();
    const { name, cniVersion } = JSON.parse(site.read(NETWORK_LIST) ?? "");
    const call = (CNI_COMMAND: string) =>
      site.host.run([`${BIN}/${product}`], {
        stdin: JSON.stringify({ ...own(), name, cniVersion }),
        environment: {
          CNI_COMMAND,
          CNI_CONTAINERID: "c1",
          CNI_NETNS: "/run/netns/vt-web",
          CNI_IFNAME: "eth0",
          CNI_PATH: BIN,
          CNI_ARGS: "K8S_POD_NAMESPACE=red;K8S_POD_NAME=web",
        },
      });
    const added = await call("ADD");
    expect(added.code).toBe(0);
    expect(JSON.parse(added.stdout).ips[0].address).toStartWith("10.70.");
    expect(new Set(audit.requests().map(({ user }) => user))).toContain(
      `system:serviceaccount:kube-system:${product}-cni-plugin`,
    );
    const line = /.*ADD.*/;
    const logged = site.read(`${identity.logDirectory}/cni/cni.log`) ?? "";
    expect(logged).toMatch(line);
    expect(logged).toContain("c1");
    expect(added.stderr).toMatch(line);
    expect((await call("DEL")).code).toBe(0);

    // The option is removed from the ConfigMap: no line goes to the file any more.
    expect((await site.inPod("install", { plugin: { log_file_path: undefined } })).code).toBe(0);
    expect(own()).not.toHaveProperty("log_file_path");
    const before = site.read(`${identity.logDirectory}/cni/cni.log`);
    for (const command of ["ADD", "DEL"]) {
      const { code, stderr } = await call(command);
      expect([code, stderr]).toEqual([0, expect.stringContaining(`${command} done`)]);
    }
    expect(site.read(`${identity.logDirectory}/cni/cni.log`)).toBe(before);
  });

  test("creates pools and settings only once", async () => {
    await site.server.kubectl(["delete", "ippool", "default-ipv6-ippool"]);
    const settings = { [`${environmentPrefix}NODE_AGENT_CONFIGURATION`]: '{"healthPort":9199}' };
    await site.inPod("install", { environment: { ...POOLS, ...settings } });
    expect(await names("ippools")).not.toContain("default-ipv6");
    expect(await names("nodeagentconfigurations")).toContain("default");
  });

  test("installs while the datastore is locked, as in a rolling upgrade, and creates nothing in it", async () => {
    const lock = (isReady: boolean) =>
      site.server.kubectl([
        ...["patch", `clusterinformation.${identity.apiGroup}`, "default", "--type=merge"],
        ...["-p", JSON.stringify({ spec: { datastoreReady: isReady } })],
      ]);
    await lock(false);
    const before = await names("ippools");
    const { code, stderr } = await site.inPod("install", { environment: POOLS });
    expect([code, stderr]).toEqual([0, expect.stringContaining("The datastore is locked")]);
    expect(await names("ippools")).toEqual(before);
    await lock(true);
  });

  test("copies the credentials of etcd, and installs no plugin beside another networking plugin", async () => {
    const files = { "/tmp/secrets/etcd-ca": "", "/tmp/secrets/etcd-cert": "cert", "/tmp/secrets/etcd-key": "key" };
    const tls = `${CONFIG_DIRECTORY}/${product}-tls`;
    const withSecrets = await site.inPod("install", { files });
    expect([withSecrets.code, withSecrets.stderr]).toEqual([0, expect.stringContaining(`${tls}/etcd-key`)]);
    expect([site.read(`${tls}/etcd-key`), modeOf(`${tls}/etcd-key`)]).toEqual(["key", "600"]);
    expect(own()).toMatchObject({ etcd_key_file: `${tls}/etcd-key`, etcd_cert_file: `${tls}/etcd-cert` });
    expect(own().etcd_ca_cert_file).toBeUndefined();

    const beside = await site.inPod("install", { environment: { [`${environmentPrefix}MANAGE_CNI`]: "false" } });
    expect([beside.code, beside.stderr]).toEqual([0, expect.stringContaining("agent.conflist")]);
    expect(existsSync(site.host.view(NETWORK_LIST))).toBe(false);
    expect(existsSync(site.host.view(KUBECONFIG))).toBe(false);
    expect(existsSync(site.host.view(`${BIN}/${product}`))).toBe(false);
    expect(site.read(`${BIN}/portmap`)).toBe("portmap of others");
    expect(JSON.parse(site.read(`${stateDirectory}/agent.conflist`) ?? "").plugins[0].nodename).toBe(NODE);
  });
});

describe("vendor-node install with etcd", () => {
  test("initializes etcd and writes its endpoints", async () => {
    const environment = { ...POOLS, ETCD_ENDPOINTS: site.server.etcdEndpoint };
    const plugin = { datastore_type: "etcdv3", etcd_endpoints: "http://<etcd>:2379" };
    const { code, stderr } = await site.inPod("install", { plugin, environment });
    expect([code, stderr]).toEqual([0, expect.stringContaining("Initialized the datastore")]);
    expect(stderr).toContain('Created pool "default-ipv4-ippool", pool "default-ipv6-ippool"');
    expect(own().etcd_endpoints).toBe(site.server.etcdEndpoint);
    expect((await site.inPod("install", { plugin, environment })).stderr).not.toContain("Created");
  });
});

describe("the node agent after the installation", () => {
  test("renews the plugin's token, follows the CA, and clears NetworkUnavailable", async () => {
    expect((await site.inPod("install")).code).toBe(0);
    const before = JSON.parse(site.read(KUBECONFIG) ?? "");
    const stale = structuredClone(before);
    stale.clusters[0].cluster["certificate-authority-data"] = "b2xk";
    site.host.writeFile(KUBECONFIG, JSON.stringify(stale));
    const condition = { type: "NetworkUnavailable", status: "True", reason: "NoRouteCreated", message: "" };
    const patch = JSON.stringify({ status: { conditions: [condition] } });
    await site.server.kubectl(["patch", "node", NODE, "--subresource=status", "--type=strategic", `--patch=${patch}`]);
    const audit = site.server.startAudit();
    const agent = await site.startAgentInPod();
    await pollUntil(() => agent.log().includes("Renewed the plugin's access"), "the agent to renew the token");
    await pollUntil(() => agent.log().includes("is marked as having a network"), "the agent to clear the condition");
    await agent.signal("TERM");
    await agent.ended;

    const { clusters, users } = JSON.parse(site.read(KUBECONFIG) ?? "");
    expect(clusters).toEqual(before.clusters);
    expect(users[0].user.token).not.toBe(before.users[0].user.token);
    expect(modeOf(KUBECONFIG)).toBe("600");
    const status = [
      "get",
      "node",
      NODE,
      "--output=jsonpath={.status.conditions[0].status} {.status.conditions[0].reason}",
    ];
    expect(await site.server.kubectl(status)).toBe(`False ${identity.title}IsUp`);
    const refused = audit.requests().filter(isForbidden);
    expect(refused.filter(({ resource }) => /token|nodes/.test(resource))).toEqual([]);
  });

  test("gets a token that the server has shortened, and asks again before that ends", async () => {
    const client = await openKubeClient({ kubeconfigs: [site.server.adminKubeconfig] }, relayed());
    const path = `${site.server.directory}/renewed-kubeconfig`;
    const stop = new AbortController();
    const ends: number[] = [];
    let now = Date.now();
    await keepPluginAccess(
      {
        path,
        server: site.server.url,
        isInstalled: () => true,
        readAuthority: () => readFileSync(site.server.credentials.authority.cert, "utf8"),
        async requestToken(signal) {
          const short = { request: (request: KubeRequest) => client.request(withSeconds(request, 600)) };
          const token = await requestAccountToken(
            short,
            { namespace: "kube-system", name: `${product}-cni-plugin`, node: NODE },
            signal,
          );
          ends.push(token.expires - now);
          return token;
        },
        readNodeUid: (signal) => nodeUid(client, NODE, signal),
        copies: () => [],
        now: () => now,
        random: () => 0,
        async wait(milliseconds) {
          now += milliseconds;
          if (ends.length === 2) stop.abort();
        },
        log: () => {},
        problems: { report: expect.unreachable, forget: () => {} },
      },
      stop.signal,
    );
    await client.close();
    expect(Math.round((ends[0] ?? 0) / 60_000)).toBe(10);
    // A quarter of ten minutes later, by a clock that runs ahead of the server's.
    expect(Math.floor((ends[1] ?? 0) / 60_000)).toBe(7);
    const own = await openKubeClient({ kubeconfigs: [path] }, relayed());
    expect((await own.request({ method: "GET", path: `/api/v1/nodes/${NODE}` })).status).toBe(200);
    await own.close();
  });
});

function relayed() {
  return { environment: {}, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() };
}

function withSeconds(request: KubeRequest, expirationSeconds: number): KubeRequest {
  return { ...request, body: JSON.stringify({ ...JSON.parse(request.body ?? ""), spec: { expirationSeconds } }) };
}

describe("vendor-node uninstall", () => {
  const tables = () => site.host.must(["nft", "list", "tables"]);

  test("leaves the networks of pods that still run, and says so", async () => {
    await site.host.must(["ip", "link", "add", `${identity.interfacePrefix}0123456789`, "type", "veth"]);
    await site.host.must(["ip", "link", "add", identity.vxlanDevice, "type", "vxlan", "id", "4096", "dstport", "4789"]);
    await site.host.must(["nft", "add", "table", "inet", identity.policyTable]);
    await site.host.must(["nft", "add", "table", "inet", "of_others"]);
    await site.host.must(["ip", "route", "add", "blackhole", "10.70.0.0/26", "proto", "86"]);
    const { code, stderr } = await site.inPod("uninstall");

    expect([code, stderr]).toEqual([0, expect.stringContaining("still run")]);
    expect(existsSync(site.host.view(NETWORK_LIST))).toBe(false);
    expect(await tables()).toContain(identity.policyTable);
  });

  test("leaves nothing if no pod is left, also the second time", async () => {
    await site.host.must(["ip", "link", "del", `${identity.interfacePrefix}0123456789`]);
    // BIRD was killed with the pod of the agent.
    site.host.writeFile(`/run/${product}/bird/bird.pid`, "7");
    // What flows leave that were on.
    site.host.writeFile(`/var/lib/${product}/flows/history.db`, "");
    site.host.writeFile(`/run/${product}/rule-numbers`, "");
    const accounting = { "net/netfilter/nf_conntrack_acct": "0" };
    site.host.writeFile(`/run/${product}/flows/connection-accounting.json`, JSON.stringify(accounting));
    await site.host.must(["sysctl", "-qw", "net.netfilter.nf_conntrack_acct=1"]);
    await site.host.must(["ip", "route", "add", "blackhole", "10.71.0.0/26", "proto", "bird"]);
    for (const _ of [1, 2]) {
      const { code, stderr } = await site.inPod("uninstall");
      expect([code, stderr]).toEqual([0, expect.stringContaining("Removed tunnels, routes and rules")]);
    }
    expect((await tables()).trim()).toBe("table inet of_others");
    expect(await site.host.must(["sysctl", "-n", "net.netfilter.nf_conntrack_acct"])).toBe("0\n");
    for (const protocol of ["86", "bird"]) {
      expect(await site.host.must(["ip", "route", "show", "proto", protocol])).toBe("");
    }
    expect(await site.host.must(["ip", "-o", "link"])).not.toContain(product);
    expect(site.read(`${BIN}/portmap`)).toBe("portmap of others");
    const left = await site.host.must(["find", BIN, CONFIG_DIRECTORY, "/var/lib", "/run", "-name", `*${product}*`]);
    expect(left).toBe("");
    expect(existsSync(site.host.view(`/etc/NetworkManager/conf.d/${product}.conf`))).toBe(false);
  });
});
