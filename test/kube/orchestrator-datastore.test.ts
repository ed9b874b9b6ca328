/** The plugin and the admin tool with the orchestrator's API as their datastore, on a real API server, under the plugin's role. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { type KubePod, type KubeSite, NAMESPACE, NODE, openKubeSite } from "../support/kube-store-site.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf } from "../support/plugin-site.ts";

const problem = hostProblem() ?? apiServerProblem();
const testSite = testNeeding(problem);

let site: KubeSite;
beforeAll(async () => {
  if (problem === undefined) site = await openKubeSite();
}, 60_000);
afterAll(() => site?.[Symbol.asyncDispose]());

interface Pod {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>>; readonly resourceVersion: string };
}

interface Handle {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
  readonly spec: Readonly<Record<string, unknown>>;
}

const podOf = ({ name }: KubePod) => site.server.get<Pod>("pod", name, `--namespace=${NAMESPACE}`);
const annotationsOf = async (pod: KubePod) => (await podOf(pod)).metadata.annotations ?? {};
const resources = async (kind: string) =>
  (await site.server.kubectl(["get", kind, "--output=name"])).split("\n").filter((name) => name !== "");
const DUAL = { ipam: { type: "vendor-ipam", assign_ipv6: "true" } };

describe("ADD and DEL with the orchestrator's API as the datastore", () => {
  testSite("record the addresses in the pod, and leave nothing but the node's blocks", async () => {
    const pod = await site.makePod("web-0");
    const addresses = await site.add(pod, site.config(DUAL));

    expect(addresses).toHaveLength(2);
    expect(await annotationsOf(pod)).toMatchObject({
      "cni.vendor.org/podIP": addresses[0],
      "cni.vendor.org/podIPs": addresses.join(","),
      "cni.vendor.org/containerID": pod.containerId,
    });
    expect(await resources("ipamhandles")).toEqual([`ipamhandle.vendor.org/net.${pod.containerId}`]);
    expect(await resources("profiles").catch(() => [])).toEqual([]);
    expect(await site.admin(["ipam", "check"])).toContain("no problems");
    expect(await site.admin(["get", "wep", "--namespace", NAMESPACE])).toContain("web--0");
    expect((await site.call("CHECK", pod, await withResult(pod))).code).toBe(0);

    await site.del(pod);
    await site.del(pod);
    expect(await annotationsOf(pod)).toMatchObject({ "cni.vendor.org/podIP": "", "cni.vendor.org/podIPs": "" });
    expect(await resources("ipamhandles")).toEqual([]);
    expect(await site.admin(["ipam", "check"])).toContain("0 addresses in use, 0 handles: no problems");
    expect((await site.call("STATUS", pod)).code).toBe(0);
  });

  /** The config of a CHECK, after a second ADD, which returns what the first one did. */
  async function withResult(pod: KubePod) {
    const { stdout } = await site.call("ADD", pod, site.config(DUAL));
    return site.config({ ...DUAL, prevResult: JSON.parse(stdout) });
  }

  testSite("refuse more addresses of another IPAM plugin than are read from the pod, and release them", async () => {
    const reservation = async () => (await site.host.run(["cat", "/var/lib/cni/networks/net/10.88.7.2"])).stdout;
    const pod = await site.makePod("many");
    const ranges = Array.from({ length: 33 }, (_, index) => [{ subnet: `10.88.${index}.0/24` }]);
    const config = site.config({ ipam: { type: "host-local", ranges } });
    const { code, msg } = failureOf(await site.call("ADD", pod, config));

    expect([code, msg]).toEqual([108, expect.stringContaining("it returned 33 addresses; at most 32")]);
    expect(await reservation()).toBe("");
    expect(await site.add(pod, site.config({ ipam: { type: "host-local", ranges: ranges.slice(1) } }))).toHaveLength(
      32,
    );
    expect(await reservation()).toContain(pod.containerId);
    await site.del(pod, config);
  });

  testSite("a DEL of an older sandbox leaves the addresses of the newer one", async () => {
    const older = await site.makePod("restarted");
    await site.add(older);
    const newer = await site.newSandbox(older);
    const [address = ""] = await site.add(newer);
    await site.del(older);

    expect(await annotationsOf(newer)).toMatchObject({
      "cni.vendor.org/podIP": address,
      "cni.vendor.org/containerID": newer.containerId,
    });
    await site.del(newer);
    expect(await resources("ipamhandles")).toEqual([]);
  });

  testSite("DEL releases the addresses of a pod that is gone", async () => {
    const pod = await site.makePod("gone");
    await site.add(pod);
    await site.server.kubectl(["delete", "pod", pod.name, `--namespace=${NAMESPACE}`, "--force", "--grace-period=0"]);
    await site.del(pod);

    expect(await resources("ipamhandles")).toEqual([]);
    expect(await site.admin(["ipam", "check"])).toContain("no problems");
  });

  testSite("a container without a pod is refused by name, with the fix", async () => {
    const pod = await site.makePod("other");
    const { containerId } = pod;
    const refused = failureOf(
      await site.host.run([site.program], {
        stdin: JSON.stringify(site.config()),
        environment: {
          CNI_COMMAND: "ADD",
          CNI_CONTAINERID: containerId,
          CNI_NETNS: pod.netns,
          CNI_IFNAME: "eth0",
          CNI_PATH: "/opt/cni/bin",
        },
      }),
    );

    expect(refused.code).toBe(7);
    expect(refused.msg).toContain(containerId);
    expect(refused.details).toContain("etcdv3");
  });

  testSite("labels of the cluster's node decide which pools it uses", async () => {
    await site.admin(["apply", "-f", "-"], poolFor("zone-b", "10.61.0.0/16", 'zone == "b"'));
    const pod = await site.makePod("selected");
    const config = site.config({ ipam: { type: "vendor-ipam", ipv4_pools: [] } });
    await site.server.kubectl(["label", "node", NODE, "zone=b", "--overwrite"]);
    await site.admin(["patch", "ippool", "four", "-p", '{"spec":{"disabled":true}}']);
    const [address = ""] = await site.add(pod, config);
    await site.del(pod);
    await site.admin(["patch", "ippool", "four", "-p", '{"spec":{"disabled":false}}']);
    await site.admin(["delete", "ippool", "zone-b"]);

    expect(address).toStartWith("10.61.");
  });

  testSite("GC removes what no attachment has any more", async () => {
    const pod = await site.makePod("forgotten");
    await site.add(pod);
    await site.host.must(["ip", "netns", "del", pod.netnsName]);
    const { code, stdout, stderr } = await site.call("GC", pod, site.config({ "cni.dev/valid-attachments": [] }));

    expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
    expect(await resources("ipamhandles")).toEqual([]);
    expect(await annotationsOf(pod)).toMatchObject({ "cni.vendor.org/podIP": "" });
  });

  testSite("GC lists only what belongs to its node, and removes handles that a killed ADD left there", async () => {
    const pod = await site.makePod("collector");
    await site.add(pod);
    const made = await site.server.get<Handle>("ipamhandle", `net.${pod.containerId}`);
    expect(made.metadata.labels).toEqual({ "vendor.org/node": NODE });
    const left = (container: string, node: string) => ({
      apiVersion: "vendor.org/v3",
      kind: "IPAMHandle",
      metadata: { name: `net.${container}`, labels: { "vendor.org/node": node } },
      spec: { ...made.spec, handleID: `net.${container}` },
    });
    const items = [left("killed", NODE), left("elsewhere", "node-2")];
    await site.server.apply(JSON.stringify({ apiVersion: "v1", kind: "List", items }));
    const audit = site.server.startAudit();
    const valid = [{ containerID: pod.containerId, ifname: "eth0" }];
    const noIpam = { feature_control: { ip_addrs_no_ipam: true } };
    for (const more of [{}, noIpam]) {
      const config = site.config({ ...more, "cni.dev/valid-attachments": valid });
      expect(await site.call("GC", pod, config)).toMatchObject({ code: 0 });
    }

    const lists = audit.requests(site.user).filter(({ verb }) => verb === "list");
    const whole = lists.filter(({ uri }) => !/[?&](label|field)Selector=/.test(uri)).map(({ resource }) => resource);
    expect([...new Set(whole)]).toEqual(["ippools"]);
    expect(await resources("ipamhandles")).toEqual(
      ["ipamhandle.vendor.org/net.elsewhere", `ipamhandle.vendor.org/net.${pod.containerId}`].toSorted(),
    );
    await site.server.kubectl(["delete", "ipamhandle", "net.elsewhere"]);
    await site.del(pod);
    expect(await resources("ipamhandles")).toEqual([]);
  });
});

describe("the admin tool with the orchestrator's API as the datastore", () => {
  testSite("registers the machine of a node in annotations of the cluster's node, and cannot label it", async () => {
    await site.admin(["node", "register", "--name", NODE]);
    const { metadata } = await site.server.get<Pod>("node", NODE);

    expect(Object.keys(metadata.annotations ?? {})).toContain("vendor.org/machine");
    expect(await site.admin(["node", "register", "--name", NODE])).toContain("unchanged");
    await expect(site.admin(["label", "node", NODE, "a=b"])).rejects.toThrow("kubectl label node");
    await expect(site.admin(["delete", "node", NODE])).rejects.toThrow("kubectl delete node");
  });

  testSite("shows and changes resources as kubectl sees them", async () => {
    await site.admin(["ipam", "configure", "--strict-affinity=true"]);
    const configuration = await site.server.get<{ spec: unknown }>("ipamconfigurations", "default");
    expect(configuration.spec).toMatchObject({ strictAffinity: true, autoAllocateBlocks: true });
    await site.admin(["ipam", "configure", "--strict-affinity=false"]);

    expect(await site.admin(["get", "profiles"])).toContain(`kns.${NAMESPACE}`);
    expect(await site.admin(["get", "nodes"])).toContain(NODE);
    expect(await site.admin(["datastore", "check"])).toMatch(/readable, at revision \d+\n/);
    expect(await site.admin(["ipam", "show"])).toContain("10.60.0.0/16");
  });
});

function poolFor(name: string, cidr: string, nodeSelector: string): string {
  return JSON.stringify({
    apiVersion: "vendor.org/v3",
    kind: "IPPool",
    metadata: { name },
    spec: { cidr, nodeSelector },
  });
}
