/** host-local with the range of the Node, on a real API server and under the deployed role. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import type { ServiceAccountUser } from "../support/kubectl.ts";
import { testNeeding } from "../support/needs.ts";
import { type CallOptions, failureOf, type Json, openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";

const DEBIAN = "/usr/lib/cni";
const OWN = dirname(builtProgram());
const NODE = "node-1";
const RANGES = [[{ subnet: "usePodCidr" }], [{ subnet: "usePodCidrIPv6" }]];

const problem = hostProblem() ?? apiServerProblem();
const testCidr = testNeeding(problem);

let site: PluginSite;
let server: ApiServer;
let plugin: ServiceAccountUser;

beforeAll(async () => {
  if (problem !== undefined) return;
  site = await openPluginSite("embedded");
  server = await startApiServer({ place: { netns: site.host.netns, address: "127.0.0.1" } });
  await server.apply(readFileSync(join(import.meta.dir, `../../deploy/rbac/${identity.product}-etcd.yaml`), "utf8"));
  plugin = await server.serviceAccount({ name: identity.product });
  await putNode(NODE, ["10.244.3.0/24", "fd00:10:244:3::/64"]);
}, 60_000);

afterAll(async () => {
  await server?.stop();
  await site?.[Symbol.asyncDispose]();
});

describe.each([
  ["our own host-local", OWN],
  ["Debian's host-local", DEBIAN],
])("the range of the Node with %s", (_, path) => {
  const testPlugin = testNeeding(problem, existsSync(`${path}/host-local`) ? undefined : "needs it");

  testPlugin("gives addresses of both families; the Node is read once, and DEL needs no API", async () => {
    const pod = await site.makePod();
    const audit = server.startAudit();

    const result = await site.add(pod, withRanges({ ranges: RANGES }, { path }));

    expect(result.ips.map(({ address }) => address)).toEqual([
      expect.stringMatching(/^10\.244\.3\.\d+\/32$/),
      expect.stringMatching(/^fd00:10:244:3::[0-9a-f]+\/128$/),
    ]);
    const reads = audit.requests(plugin.user).filter(({ resource }) => resource === "nodes");
    expect(reads).toMatchObject([{ verb: "get", name: NODE, status: 200 }]);
    const offline = withRanges({ ranges: RANGES }, { path, kubeconfig: "/nonexistent/kubeconfig" });
    await site.quietly("CHECK", pod, { ...offline, config: { ...offline.config, prevResult: result } });
    await site.quietly("DEL", pod, offline);
    expect(audit.requests(plugin.user).filter(({ resource }) => resource === "nodes")).toHaveLength(1);
    expect(await site.left()).toEqual([]);
  });

  testPlugin("is also used in the flat form, in any case, beside other ranges", async () => {
    const pod = await site.makePod();
    const ipam = { subnet: "USEPODCIDR", rangeStart: "10.244.3.100", ranges: [[{ subnet: "10.77.0.0/24" }]] };

    const { ips } = await site.add(pod, withRanges(ipam, { path }));

    expect(ips.map(({ address }) => address)).toEqual([
      expect.stringMatching(/^10\.244\.3\.1\d\d\/32$/),
      expect.stringMatching(/^10\.77\.0\.\d+\/32$/),
    ]);
    await site.quietly("DEL", pod, withRanges(ipam, { path, kubeconfig: "/nonexistent/kubeconfig" }));
    expect(await site.left()).toEqual([]);
  });
});

describe("the range of the Node", () => {
  testCidr("is that of kubernetes.node_name, if the Node has another name", async () => {
    await putNode("other", ["10.244.9.0/24"]);
    const pod = await site.makePod();
    const options = withRanges({ subnet: "usePodCidr" }, { node: "other" });

    expect((await site.add(pod, options)).ips[0]?.address).toStartWith("10.244.9.");
    await site.quietly("DEL", pod, options);
  });

  testCidr("is refused with the Node, the field and the remedy if there is none", async () => {
    await putNode("bare", []);
    await putNode("single", ["10.244.9.0/24"]);
    const failure = async (node: string, subnet: string) =>
      failureOf(await site.call("ADD", await site.makePod(), withRanges({ ranges: [[{ subnet }]] }, { node })));

    expect(await failure("bare", "usePodCidr")).toMatchObject({
      code: 11,
      msg: 'Cannot use "ipam.ranges[0][0].subnet" "usePodCidr": Node "bare" has no IPv4 range: its "spec.podCIDRs" is empty',
      details: expect.stringContaining("--allocate-node-cidrs"),
    });
    expect(await failure("single", "usePodCidrIPv6")).toMatchObject({
      code: 7,
      msg: expect.stringContaining('Node "single" has no IPv6 range: its "spec.podCIDRs" contains "10.244.9.0/24"'),
    });
    expect(await failure("absent", "usePodCidr")).toMatchObject({
      msg: 'Cannot use "ipam.ranges[0][0].subnet" "usePodCidr": there is no Node "absent"',
      details: expect.stringContaining('"kubernetes.node_name"'),
    });
    expect(await site.left()).toEqual([]);
  });

  testCidr("needs access to the API for ADD, and STATUS says so before", async () => {
    const pod = await site.makePod();
    const without = { config: site.config({ ipam: { type: "host-local", subnet: "usePodCidr" } }) };
    const options = { ...without, environment: { CNI_PATH: OWN } };

    const refused = 'Cannot use "ipam.subnet" "usePodCidr": the config does not give access to the Kubernetes API';
    expect(failureOf(await site.call("ADD", pod, options))).toMatchObject({ code: 7, msg: refused });
    expect(failureOf(await site.call("STATUS", pod, options))).toMatchObject({ code: 50, msg: refused });
    await site.quietly("STATUS", pod, withRanges({ subnet: "usePodCidr" }));
    await site.quietly("DEL", pod, options);
  });
});

interface Access {
  readonly path?: string;
  readonly kubeconfig?: string;
  readonly node?: string;
}

function withRanges(ipam: Json, { path = OWN, kubeconfig = plugin.kubeconfig, node }: Access = {}): CallOptions {
  return {
    config: site.config({
      // Debian's predates CNI 1.1.0.
      cniVersion: path === DEBIAN ? "1.0.0" : "1.1.0",
      kubernetes: { kubeconfig, ...(node === undefined ? {} : { node_name: node }) },
      ipam: { type: "host-local", ...ipam },
    }),
    environment: { CNI_PATH: path },
  };
}

async function putNode(name: string, podCIDRs: readonly string[]): Promise<void> {
  const [podCIDR] = podCIDRs;
  const spec = podCIDR === undefined ? {} : { podCIDR, podCIDRs };
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name }, spec }));
}
