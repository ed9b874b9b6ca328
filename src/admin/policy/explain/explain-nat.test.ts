/** `policy explain` follows published ports, host ports, Services, floating IPs and masquerading. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../../test/support/admin-context.ts";
import { seed } from "../../../../test/support/ipam.ts";
import { recordFileName, writeRecordFile } from "../../../chained/portmap/record-file.ts";
import { runningOwners } from "../../../chained/portmap/running-owners.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { PluginError } from "../../../errors.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { type Address, parseAddress } from "../../../ip/address.ts";
import type { KubeClient } from "../../../kube/api.ts";
import type { FileFolder } from "../../../linux/file-folder.ts";
import { resourceKey } from "../../../model/keys.ts";
import { networkProfileSpec } from "../../../model/network-profile.ts";

const EMBEDDED = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path };
const LABEL = identity.labelPrefix;

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await put("profiles", "Profile", "pods", networkProfileSpec("pods"));
  await put("nodes", "Node", "here", { bgp: { ipv4Address: "192.0.2.2/24" } });
  await put("nodes", "Node", "there", { bgp: { ipv4Address: "192.0.2.3/24" } });
  await container("web", { ipNetworks: ["10.0.0.5/32"] });
});

function put(plural: string, kind: string, name: string, spec: object, more: object = {}): Promise<void> {
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name, ...more }, spec });
  return seed(store, { kind: "put", key: resourceKey(plural, { name, ...more }), value });
}

function container(name: string, spec: object): Promise<void> {
  const labels = { role: name, [`${LABEL}namespace`]: "default" };
  const own = { orchestrator: "cni", node: "here", workload: name, containerID: name, endpoint: "eth0" };
  const more = { profiles: ["pods"], interfaceName: `vend${name}` };
  const metadata = { namespace: "default", labels };
  return put("workloadendpoints", "WorkloadEndpoint", `here-cni-${name}-eth0`, { ...own, ...more, ...spec }, metadata);
}

function closeWeb(): Promise<void> {
  const spec = { tier: "default", selector: "role == 'web'", types: ["Ingress"] };
  return put("networkpolicies", "NetworkPolicy", "closed", spec, { namespace: "default" });
}

const address = (text: string): Address => parseAddress(text) ?? { family: 4, value: 0n };

/** What the plugin records of `-p 8080:80`, by name of the file. */
function recorded(hostIp: string, netns = "/run/netns/web"): Readonly<Record<string, string>> {
  const owner = { id: new Uint8Array(16), name: "pods/web/eth0" };
  const claim = {
    ...{ family: 4 as const, protocol: 6, hostAddress: address(hostIp), hostPort: 8080 },
    ...{ podAddress: address("10.0.0.5"), podPort: 80 },
  };
  const files: Record<string, string> = {};
  writeRecordFile(
    { write: (name, text) => void Object.assign(files, { [name]: text }) },
    {
      recordSets: [{ family: 4, owner, netns, records: [{ kind: "port", claim }] }],
      loopback: undefined,
      hostNetns: undefined,
    },
  );
  return files;
}

interface Site {
  /** Records of ports. */
  readonly files?: Readonly<Record<string, string>>;
  readonly client?: Pick<KubeClient, "request">;
  /** Of the folder with the records of ports. */
  readonly failure?: string;
}

function explain(words: string, { files = {}, client, failure }: Site = {}): Promise<AdminRun> {
  const env = client === undefined ? EMBEDDED : { DATASTORE_TYPE: "kubernetes", KUBECONFIG: "/kubeconfig" };
  const hostAddresses = ["192.0.2.2", "198.51.100.2"].map((text) => ({
    address: address(text),
    length: 24,
    link: LINK,
  }));
  const openKubeClient = async () => ({ ...client, close: async () => {} }) as KubeClient;
  const folder: FileFolder = {
    path: "/run/ports",
    list: () => Object.keys(files),
    read: (name) => files[name] ?? "",
    write: () => {},
    remove: () => {},
    changedAt() {
      if (failure === undefined) return 1n;
      throw Object.assign(new Error(failure), { code: failure });
    },
  };
  return runInside(["policy", "explain", ...words.split(" ")], {
    ...{ store, env, hostAddresses, openKubeClient },
    publishedPorts: async () => runningOwners(folder),
  });
}

const LINK = { name: "eth0", mtu: 1500, defaultRoutes: [] };
const PUBLISHED = "--from 192.0.2.1 --to 192.0.2.2 --port 8080";

describe("a published port of this host", () => {
  test("leads to its container, whose policies decide", async () => {
    await closeWeb();

    const { stdout } = await explain(PUBLISHED, { files: recorded("0.0.0.0") });

    expect(stdout).toBe(
      [
        "Packet:     IPv4 TCP to port 8080",
        "From:       192.0.2.1 (not a workload)",
        "To:         192.0.2.2 (node here)",
        'Leads to:   192.0.2.2:8080 is web:80 (10.0.0.5, published port of node "here")',
        "Verdict:    denied",
        "",
        "Ingress of web: denied",
        '  Because:    no rule of the policy that applies in tier "default" matches, so the tier denies it',
        "  Policies:   1.   NetworkPolicy default/closed   tier default   no rule matches",
        "",
      ].join("\n"),
    );
  });

  test("is judged by the port of the container, and is in JSON", async () => {
    const rule = { action: "Allow", protocol: "TCP", destination: { ports: [80] } };
    const spec = { tier: "default", selector: "role == 'web'", ingress: [rule] };
    await put("networkpolicies", "NetworkPolicy", "open", spec, { namespace: "default" });

    const { packets } = JSON.parse((await explain(`${PUBLISHED} -o json`, { files: recorded("0.0.0.0") })).stdout);

    expect(packets[0]).toMatchObject({
      verdict: "allow",
      to: { address: "192.0.2.2", node: "here" },
      target: { address: "10.0.0.5", workload: "web", port: 80, by: 'published port of node "here"' },
      packet: { destinationPort: 8080 },
    });
  });

  test.each([
    ["another port", "--from 192.0.2.1 --to 192.0.2.2 --port 8081", "0.0.0.0"],
    ["another protocol", "--from 192.0.2.1 --to 192.0.2.2 --port 8080 --protocol udp", "0.0.0.0"],
    ["another address of the host", PUBLISHED, "192.0.2.9"],
  ])("%s leads to the host itself", async (_, words, hostIp) => {
    await closeWeb();

    expect((await explain(words, { files: recorded(hostIp) })).stdout).toContain("no policy applies.\n");
  });

  test("that is given as a port of the container gets a note with the port that the rules see", async () => {
    const rule = { action: "Allow", protocol: "TCP", destination: { ports: [8080] } };
    const spec = { tier: "default", selector: "role == 'web'", ingress: [rule] };
    await put("networkpolicies", "NetworkPolicy", "wrong", spec, { namespace: "default" });
    const files = recorded("0.0.0.0");
    const noteOf = async (words: string) =>
      JSON.parse((await explain(`--from 192.0.2.1 --to web ${words} -o json`, { files })).stdout).packets[0].note;

    expect(await noteOf("--port 8080")).toBe(
      "web publishes 8080 as 80: packets to port 8080 of the host arrive at its port 80, which is denied",
    );
    expect(await noteOf("--port 80")).toBeUndefined();
    expect(await noteOf("--port 8080 --protocol udp")).toBeUndefined();
  });

  test("of a host that is given by the name of its node is followed", async () => {
    await closeWeb();

    const { stdout } = await explain("--from 192.0.2.1 --to here --port 8080", { files: recorded("0.0.0.0") });

    expect(stdout).toContain("To:         192.0.2.2 (node here)\n");
    expect(stdout).toContain("192.0.2.2:8080 is web:80");
    const misspelt = await explain("--from 192.0.2.1 --to ther --port 8080");
    expect(misspelt.stderr).toContain('did you mean "there"?');
    const local = await explain("--from 192.0.2.1 --to localhost --port 8080");
    expect(local.stderr).toContain("for this host use one of its addresses");
  });

  test("of this host, whose Node has no address, is followed by its name too", async () => {
    await put("nodes", "Node", "here", {});
    const list = { name: "pods", cniVersion: "1.0.0", type: identity.product, ipam: { type: identity.ipamType } };
    const ask = (to: string) =>
      runInside(["policy", "explain", "--from", "192.0.2.1", "--to", to, "--port", "8080"], {
        ...{ store, env: EMBEDDED, hostName: "here" },
        files: { "/etc/cni/net.d/10.conf": JSON.stringify(list) },
        hostAddresses: [{ address: address("198.51.100.2"), length: 24, link: LINK }],
      });

    expect((await ask("here")).stdout).toContain("To:         198.51.100.2 (node here)\n");
    expect((await ask("localhost")).stderr).toContain('for this host use "here" or one of its addresses');
    await put("nodes", "Node", "empty", {});
    expect((await ask("empty")).stderr).toContain('node "empty" has no known address; give an address');
  });

  test("cannot be known without its record: none is there, or it cannot be read", async () => {
    expect((await explain(PUBLISHED)).stdout).not.toContain("Note:");
    const files = { [recordFileName(new Uint8Array(16))]: "of another release" };
    expect((await explain(PUBLISHED, { files })).stdout).toContain(
      `Note:       published ports of this host are not followed: their records cannot be read: "/run/ports/${"0".repeat(32)}"`,
    );
    expect((await explain(PUBLISHED, { failure: "EACCES" })).stdout).toContain(
      "Note:       published ports of this host are not followed: their records cannot be read: ",
    );
  });

  test("of a container that has ended leads nowhere", async () => {
    await closeWeb();
    const files = recorded("0.0.0.0", "netns 1/1 1 /run/netns/ended");

    expect((await explain(PUBLISHED, { files })).stdout).toContain("no policy applies.\n");
  });

  test("is reached by the host itself, also at its loopback and at addresses that its Node does not have", async () => {
    await closeWeb();
    const files = recorded("0.0.0.0");
    const verdicts = [
      "127.0.0.1 --to 127.0.0.1",
      "198.51.100.2 --to 198.51.100.2",
      "198.51.100.7 --to 198.51.100.2",
    ].map(
      async (ends) =>
        JSON.parse((await explain(`--from ${ends} --port 8080 -o json`, { files })).stdout).packets[0].verdict,
    );

    expect(await Promise.all(verdicts)).toEqual(["allow", "allow", "deny"]);
  });

  test("of another host is not known here, and that is said", async () => {
    const { stdout } = await explain("--from 192.0.2.1 --to 192.0.2.3 --port 8080", { files: recorded("0.0.0.0") });

    expect(stdout).toContain('Note:       published ports of node "there" are not followed here; ask on that host');
  });
});

test("a host port of a pod leads to it, on any node", async () => {
  const ports = [{ name: "http", protocol: "TCP", port: 80, hostPort: 8080 }];
  await container("far", { node: "there", ipNetworks: ["10.0.0.7/32"], ports });

  expect((await explain("--from 192.0.2.1 --to 192.0.2.3 --port 8080")).stdout).toContain(
    'Leads to:   192.0.2.3:8080 is far:80 (10.0.0.7, published port of node "there")\n',
  );
});

test("a floating IP leads to its workload, also for the workload itself, whose both directions are judged", async () => {
  await container("web", {
    ipNetworks: ["10.0.0.5/32"],
    ipNATs: [{ externalIP: "203.0.113.80", internalIP: "10.0.0.5" }],
  });
  await closeWeb();

  const { stdout } = await explain("--from web --to 203.0.113.80 --port 80");

  expect(stdout).toContain("Leads to:   203.0.113.80:80 is web:80 (10.0.0.5, floating IP)\nVerdict:    denied\n");
  expect(stdout).toContain("Egress of web: allowed\n");
});

describe("natOutgoing", () => {
  beforeEach(() => put("ippools", "IPPool", "pods", { cidr: "10.0.0.0/24", natOutgoing: true }));

  test("is said for a destination outside all pools", async () => {
    expect((await explain("--from web --to 198.51.100.7 --port 443")).stdout).toContain(
      "Leaves as:  the address of node here (natOutgoing of pool pods)\n",
    );
    expect((await explain("--from web --to 10.0.0.9 --port 443")).stdout).not.toContain("Leaves as");
    expect((await explain("--from web --to 127.0.0.1 --port 443")).stdout).not.toContain("Leaves as");
  });

  test("another host sees the address of the node, and its policies judge that", async () => {
    await put(
      "hostendpoints",
      "HostEndpoint",
      "there",
      { node: "there", interfaceName: "*" },
      { labels: { host: "a" } },
    );
    const rule = { action: "Allow", source: { nets: ["192.0.2.2/32"] } };
    const spec = { tier: "default", selector: "host == 'a'", ingress: [rule] };
    await put("globalnetworkpolicies", "GlobalNetworkPolicy", "nodes", spec);

    expect((await explain("--from web --to 192.0.2.3 --port 443")).stdout).toContain("Verdict:    allowed\n");
  });
});

describe("a port or floating IP that a container of another node uses", () => {
  const USED = "--from client --to 192.0.2.2 --port 8080";
  const files = recorded("0.0.0.0");
  beforeEach(async () => {
    await container("client", { node: "there", ipNetworks: ["10.0.0.9/32"] });
  });

  test("is rewritten on the node that has it: egress policies of the client see the address as it is sent", async () => {
    const destination = { selector: "role == 'web'", ports: [80] };
    const egress = [{ action: "Allow", protocol: "TCP", destination }];
    const spec = { tier: "default", selector: "role == 'client'", types: ["Egress"], egress };
    await put("networkpolicies", "NetworkPolicy", "web-only", spec, { namespace: "default" });

    expect((await explain(USED, { files })).stdout).toContain("Egress of client: denied\n");
    expect((await explain("--from client --to web --port 80")).stdout).toContain("Verdict:    allowed\n");
  });

  test("so do the host endpoints of the client's node", async () => {
    await put(
      "hostendpoints",
      "HostEndpoint",
      "there",
      { node: "there", interfaceName: "*" },
      { labels: { host: "a" } },
    );
    const rule = { action: "Deny", protocol: "TCP", destination: { ports: [8080] } };
    const spec = { tier: "default", selector: "host == 'a'", types: ["Egress"], applyOnForward: true };
    await put("globalnetworkpolicies", "GlobalNetworkPolicy", "no-8080", {
      ...spec,
      egress: [rule, { action: "Allow" }],
    });

    expect((await explain(USED, { files })).stdout).toContain("Verdict:    denied\n");
  });

  test.each([
    ["a published port", USED],
    ["a floating IP", "--from client --to 203.0.113.80 --port 80"],
  ])("%s: natOutgoing hides the client from the policies of the container", async (_, words) => {
    const ipNATs = [{ externalIP: "203.0.113.80", internalIP: "10.0.0.5" }];
    await container("web", { ipNetworks: ["10.0.0.5/32"], ipNATs });
    const ingress = [{ action: "Allow", source: { selector: "role == 'client'" } }];
    const spec = { tier: "default", selector: "role == 'web'", ingress };
    await put("networkpolicies", "NetworkPolicy", "client-only", spec, { namespace: "default" });

    expect((await explain(words, { files })).stdout).toContain("Verdict:    allowed\n");
    await put("ippools", "IPPool", "pods", { cidr: "10.0.0.0/24", natOutgoing: true });
    const { stdout } = await explain(words, { files });
    expect(stdout).toContain("Leaves as:  the address of node there (natOutgoing of pool pods)\nVerdict:    denied\n");
  });
});

test("127.0.0.1 is the container's own loopback, also if the host publishes the port", async () => {
  await closeWeb();

  const { stdout } = await explain("--from web --to 127.0.0.1 --port 8080", { files: recorded("0.0.0.0") });

  expect(stdout).not.toContain("Leads to");
  expect(stdout).toContain("Verdict:    allowed\n");
  expect(stdout).toContain("a packet of a workload to its own address never leaves it");
});

test("without any policy a node enforces profiles only if it has a host endpoint", async () => {
  await put("profiles", "Profile", "pods", networkProfileSpec("pods"), { labels: { closed: "yes" } });
  await put("profiles", "Profile", "other", { egress: [{ action: "Allow" }] });
  await container("client", { node: "there", ipNetworks: ["10.0.0.9/32"], profiles: ["other"] });
  const host = (node: string) =>
    put("hostendpoints", "HostEndpoint", node, { node, interfaceName: "*", profiles: ["all"] });
  const words = "--from client --to web --port 80";

  await host("there");
  expect((await explain(words)).stdout).toContain("Verdict:    allowed\nNote:       there is no policy");
  await host("here");
  expect((await explain(words)).stdout).toContain("Verdict:    denied\n");
});

describe("a Service", () => {
  const SERVICE = {
    metadata: { namespace: "shop", name: "web" },
    spec: { clusterIPs: ["10.96.0.9"], ports: [{ name: "http", port: 80, nodePort: 30080 }] },
  };
  const SLICE = {
    metadata: { namespace: "shop", name: "web-1", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8000 }],
    endpoints: [
      { addresses: ["10.0.0.5"], conditions: { ready: true } },
      { addresses: ["10.0.0.6"], conditions: { ready: false } },
    ],
  };
  const serving = (service: object): Pick<KubeClient, "request"> => ({
    request: async ({ path }) => {
      const items = path.endsWith("/services") ? [service] : path.endsWith("/endpointslices") ? [SLICE] : [];
      return { status: 200, text: JSON.stringify({ metadata: { resourceVersion: "1" }, items }) };
    },
  });
  const client = serving(SERVICE);

  test.each([
    ["its cluster IP", "--from 198.51.100.7 --to 10.96.0.9 --port 80", "10.96.0.9:80"],
    ["a node port of any node", "--from 198.51.100.7 --to 192.0.2.3 --port 30080", "192.0.2.3:30080"],
  ])("leads from %s to its backends that are ready", async (_, words, sent) => {
    await closeWeb();

    const { stdout } = await explain(words, { client });

    expect(stdout).toContain(`Leads to:   ${sent} is web:8000 (10.0.0.5, Service shop/web)\nVerdict:    denied\n`);
    expect(stdout).not.toContain("10.0.0.6");
  });

  describe("at a node port of a node without the backend", () => {
    const words = "--from 198.51.100.7 --to 192.0.2.3 --port 30080";

    test("the host endpoints of that node judge it, before its destination is rewritten", async () => {
      const host = { node: "there", interfaceName: "*" };
      await put("hostendpoints", "HostEndpoint", "there", host, { labels: { host: "a" } });
      const rule = { action: "Deny", protocol: "TCP", destination: { ports: [30080] } };
      const options = { preDNAT: true, applyOnForward: true, types: ["Ingress"], ingress: [rule] };
      await put("globalnetworkpolicies", "GlobalNetworkPolicy", "pre", {
        ...{ tier: "default", selector: "host == 'a'" },
        ...options,
      });

      const { stdout } = await explain(words, { client });

      expect(stdout).toContain("Verdict:    denied\n");
      expect(stdout).toContain("Ingress of host endpoint there (node there, all interfaces): denied\n");
    });

    test("its backend sees that node instead of the client, and that is said", async () => {
      const ingress = [{ action: "Allow", source: { nets: ["192.0.2.3/32"] } }];
      const spec = { tier: "default", selector: "role == 'web'", ingress };
      await put("networkpolicies", "NetworkPolicy", "nodes", spec, { namespace: "default" });

      const { stdout } = await explain(words, { client });

      expect(stdout).toContain("Verdict:    allowed\n");
      expect(stdout).toContain(
        'Note:       node "there" sends it to node "here" with its own address instead of the client\'s, as kube-proxy does (externalTrafficPolicy Cluster)\n',
      );
      expect((await explain(words.replace(".3", ".2"), { client })).stdout).toContain("Verdict:    denied\n");
    });

    test("with externalTrafficPolicy Local only backends of that node answer", async () => {
      const local = { ...SERVICE, spec: { ...SERVICE.spec, externalTrafficPolicy: "Local" } };

      const { stdout } = await explain(words, { client: serving(local) });

      expect(stdout).toContain(
        'Note:       Service shop/web has no backend on node "there" that is ready (externalTrafficPolicy Local): nothing answers',
      );
      expect((await explain(words.replace(".3", ".2"), { client: serving(local) })).stdout).toContain("is web:8000");
    });
  });

  test("with many backends shows five, those that are denied first, and counts all", async () => {
    const addresses = ["10.0.1.1", "10.0.1.2", "10.0.1.3", "10.0.1.4", "10.0.1.5", "10.0.1.6", "10.0.0.5"];
    const endpoints = addresses.map((each) => ({ addresses: [each], conditions: { ready: true } }));
    const many = { request: client.request, slice: { ...SLICE, endpoints } };
    await closeWeb();

    const { stdout } = await explain("--from 198.51.100.7 --to 10.96.0.9 --port 80", {
      client: {
        request: async (asked) =>
          asked.path.endsWith("/endpointslices")
            ? { status: 200, text: JSON.stringify({ metadata: { resourceVersion: "1" }, items: [many.slice] }) }
            : many.request(asked),
      },
    });

    expect(stdout.match(/Leads to:/g)).toHaveLength(5);
    expect(stdout).toContain("is web:8000 (10.0.0.5, Service shop/web; one of 7 backends, of which 1 is denied)");
  });

  test("without a backend that is ready is said to answer nothing", async () => {
    const { stdout } = await explain("--from 198.51.100.7 --to 10.96.0.9 --port 80", {
      client: { request: async () => ({ status: 200, text: JSON.stringify({ metadata: {}, items: [SERVICE] }) }) },
    });

    expect(stdout).toContain("Note:       Service shop/web has no backend that is ready: nothing answers");
  });

  test("that cannot be read is not followed, and that is said", async () => {
    const refusing = { request: () => Promise.reject(new PluginError("api-unavailable", "Cannot list services")) };

    expect((await explain("--from 198.51.100.7 --to 10.96.0.9 --port 80", { client: refusing })).stdout).toContain(
      "Note:       Services are not followed: Cannot list services\n",
    );
  });
});
