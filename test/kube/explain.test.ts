/** `ipam explain` and `policy explain` on a real API server, for pods that the built plugin attaches. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { type KubeSite, NAMESPACE, NODE, openKubeSite } from "../support/kube-store-site.ts";
import { root, testNeeding } from "../support/needs.ts";
import { builtProgram } from "../support/run-plugin.ts";

const problem = root ?? apiServerProblem();
const testSite = testNeeding(problem);
const POOLS = `${identity.annotationPrefix}ipv4pools`;

let site: KubeSite;
beforeAll(async () => {
  if (problem !== undefined) return;
  site = await openKubeSite();
  for (const [name, cidr, more] of [
    ["other", "10.61.0.0/16", {}],
    ["elsewhere", "10.62.0.0/16", { nodeSelector: "zone == 'b'" }],
  ] as const) {
    const pool = { apiVersion: API_VERSION, kind: "IPPool", metadata: { name }, spec: { cidr, ...more } };
    await site.server.apply(JSON.stringify(pool));
  }
  site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ ...site.config(), plugins: [site.config()] }));
}, 120_000);
afterAll(() => site?.[Symbol.asyncDispose]());

interface Explained {
  readonly node: string;
  readonly families: readonly {
    readonly decidedBy: { readonly place: string };
    readonly overridden: readonly { readonly place: string }[];
    readonly pools: readonly { readonly name: string; readonly cidr: string; readonly passedOver?: string }[];
    readonly addresses: readonly {
      readonly address: string;
      readonly pool: string;
      readonly allocation: { readonly blockOf: string };
    }[];
  }[];
}

async function explain(pod: string): Promise<Explained> {
  return JSON.parse(await site.admin(["ipam", "explain", `${NAMESPACE}/${pod}`, "--output=json"]));
}

describe("ipam explain on the orchestrator's API", () => {
  testSite("shows what the node's labels decided, and the block of the address", async () => {
    const pod = await site.makePod("plain");
    const [address = ""] = await site.add(pod);

    const { node, families } = await explain("plain");

    expect(node).toBe(NODE);
    expect(families[0]?.decidedBy.place).toBe("node and namespace selectors of the pools");
    expect(families[0]?.pools).toEqual([
      { name: "four", cidr: "10.60.0.0/16" },
      { name: "other", cidr: "10.61.0.0/16" },
      {
        name: "elsewhere",
        cidr: "10.62.0.0/16",
        passedOver: `its node selector zone == 'b' does not select node "${NODE}"`,
      },
    ]);
    expect(families[0]?.addresses).toMatchObject([
      { address: address.replace(/\/.*/, ""), pool: "four", allocation: { blockOf: NODE } },
    ]);
    await site.del(pod);
  });

  testSite("shows the annotation of a pod that waits for its address, over that of its namespace", async () => {
    await site.server.kubectl(["annotate", "namespace", NAMESPACE, `${POOLS}=["four"]`]);
    await site.makePod("waiting", { metadata: { annotations: { [POOLS]: '["other"]' } } });

    const { families } = await explain("waiting");

    expect(families[0]?.decidedBy.place).toBe(`annotation "${POOLS}" of pod "${NAMESPACE}/waiting"`);
    expect(families[0]?.overridden.map(({ place }) => place)).toEqual([
      `annotation "${POOLS}" of namespace "${NAMESPACE}" (pod "${NAMESPACE}/waiting")`,
    ]);
    expect(families[0]?.pools.find(({ passedOver }) => passedOver === undefined)?.name).toBe("other");
    expect(families[0]?.addresses).toEqual([]);
  });
});

describe("policy explain on the orchestrator's API", () => {
  testSite("follows a Service to the pod behind it, whose policies decide", async () => {
    const pod = await site.makePod("behind");
    const [address = ""] = await site.add(pod);
    const service = {
      ...{ apiVersion: "v1", kind: "Service", metadata: { namespace: NAMESPACE, name: "shop" } },
      spec: { ports: [{ name: "http", port: 80, targetPort: 8000 }] },
    };
    const slice = {
      ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
      metadata: { namespace: NAMESPACE, name: "shop-1", labels: { "kubernetes.io/service-name": "shop" } },
      ports: [{ name: "http", port: 8000, protocol: "TCP" }],
      endpoints: [{ addresses: [address.replace(/\/.*/, "")], conditions: { ready: true } }],
    };
    for (const object of [service, slice]) await site.server.apply(JSON.stringify(object));
    const path = ["-n", NAMESPACE, "get", "service", "shop", "-o", "jsonpath={.spec.clusterIP}"];
    const clusterIp = (await site.server.kubectl(path)).trim();
    const words = ["policy", "explain", "--from", "198.51.100.7", "--to", clusterIp, "--port", "80", "--output=json"];
    const [packet] = JSON.parse(await site.admin(words)).packets;

    expect(packet).toMatchObject({
      verdict: "allow",
      target: { workload: `${NAMESPACE}/behind`, port: 8000, by: `Service ${NAMESPACE}/shop` },
    });
    const policy = {
      ...{ apiVersion: API_VERSION, kind: "NetworkPolicy", metadata: { namespace: NAMESPACE, name: "closed" } },
      spec: { selector: "all()", types: ["Ingress"] },
    };
    const environment = { DATASTORE_TYPE: "kubernetes", KUBECONFIG: site.server.adminKubeconfig };
    const applied = await site.host.run([builtProgram(identity.adminTool), "apply", "-f", "-"], {
      environment,
      stdin: JSON.stringify(policy),
    });
    expect(applied.stderr).toMatch(/^note: closes ingress of \d pods?: red\/behind\b/m);
    expect(JSON.parse(await site.admin(words)).packets[0].verdict).toBe("deny");
    await site.del(pod);
  });
});
