/** `ipam explain` on a real API server, for pods that the built plugin attaches. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { type KubeSite, NAMESPACE, NODE, openKubeSite } from "../support/kube-store-site.ts";
import { root, testNeeding } from "../support/needs.ts";

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
    expect(families[0]?.decidedBy.place).toBe("node selectors of the pools");
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
