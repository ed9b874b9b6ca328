/**
 * ClusterNetworkPolicies on two real nodes: the conformance tests of `sigs.k8s.io/network-policy-api`, unchanged. Where the
 * kernel has no sockets of SCTP, their pods send the first two packets of an association with raw sockets.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { identity } from "../../src/identity.ts";
import type { Audit } from "../support/kube-audit.ts";
import type { KubeNode } from "../support/kube-node.ts";
import {
  openProductControlPlane,
  type ProductControlPlane,
  type ProductNetworkPlan,
  productClusterProblem,
} from "../support/kube-product.ts";
import { testNeeding } from "../support/needs.ts";
import {
  clusterPolicyDefinition,
  conformanceImage,
  conformanceProblem,
  runConformance,
} from "../support/network-policy-api.ts";
import { pollUntil } from "../support/poll.ts";
import { startProductControllers, startProductNode } from "../support/product-nodes.ts";
import { proofSize } from "../support/proof-size.ts";
import { isForbidden } from "../support/role-use.ts";

const problem = productClusterProblem() ?? conformanceProblem();
const testNodes = testNeeding(problem);
setDefaultTimeout(3_600_000);

const NODES = ["node-1", "node-2"];
const DEFINITION = "clusternetworkpolicies.policy.networking.k8s.io";
const ALL: readonly ProductNetworkPlan["datastore"][] = ["kubernetes", "etcd"];
/** A denied connection takes six seconds there: three until it is given up, twice. */
const { datastores, wanted, passed } = proofSize({
  everyDay: {
    datastores: ALL.slice(0, 1),
    wanted: "^(CNPAdminTierEgressNodePeers|CNPBaselineTierIngressNamedPort)$",
    passed: 6,
  },
  soak: { datastores: ALL, wanted: ".", passed: 116 },
});

interface Policy {
  readonly status?: { readonly conditions?: readonly object[] };
}

describe.each(datastores.map((datastore) => ({ datastore })))(
  "ClusterNetworkPolicy, datastore $datastore",
  ({ datastore }) => {
    let cluster: ProductControlPlane;
    let node: KubeNode;
    let audit: Audit;
    beforeAll(async () => {
      if (problem !== undefined) return;
      cluster = await openProductControlPlane({ datastore, families: "IPv4", tunnels: "VXLAN", policy: "k8s" });
      audit = cluster.server.startAudit();
      await startProductControllers(cluster, datastore);
      using image = await conformanceImage();
      for (const name of NODES) {
        node = await cluster.addNode(name, [image.archive]);
        await startProductNode(cluster, node);
      }
    });
    afterAll(() => cluster?.[Symbol.asyncDispose]());

    const copies = async () => (await cluster.adminOn(node, ["get", "globalnetworkpolicies", "-o", "name"])).trim();

    testNodes("the conformance tests pass, with a definition that is applied while all programs run", async () => {
      const { server, host } = cluster;
      await server.apply(clusterPolicyDefinition());
      await server.kubectl(["wait", "--for=condition=Established", `crd/${DEFINITION}`]);

      const { outcomes, log } = await runConformance(host, { kubeconfig: server.adminKubeconfig, wanted });

      const notPassed = Array.from(outcomes).filter(([, outcome]) => outcome !== "PASS");
      const isWhole = notPassed.length === 0 && outcomes.size === passed;
      if (!isWhole) console.error(log);
      expect(notPassed).toEqual([]);
      expect(outcomes.size).toBe(passed);
    });

    testNodes("its status says what is not carried out, and the tools call it by its name", async () => {
      const { server } = cluster;
      const egress = [{ name: "outside", action: "Accept", to: [{ domainNames: ["example.org"] }] }];
      const spec = { tier: "Baseline", priority: 7, subject: { namespaces: {} }, egress };
      const head = { apiVersion: "policy.networking.k8s.io/v1alpha2", kind: "ClusterNetworkPolicy" };
      await server.apply(JSON.stringify({ ...head, metadata: { name: "names" }, spec }));
      const conditions = async () => (await server.get<Policy>(DEFINITION, "names")).status?.conditions ?? [];

      await pollUntil(async () => (await conditions()).length > 0, "the condition");
      expect(await conditions()).toMatchObject([
        {
          ...{ type: "Accepted", status: "False", reason: "NotSupported", observedGeneration: 1 },
          message: "egress[0]: domainNames is not supported, so that this peer allows nothing",
        },
      ]);
      await pollUntil(async () => (await copies()).includes("kcnp.names"), "the policy");
      const removed = await cluster.adminOn(node, ["delete", "gnp", "kcnp.names"]).catch(String);
      if (datastore === "kubernetes") expect(removed).toContain("derived from its ClusterNetworkPolicies");
      else await pollUntil(async () => (await copies()).includes("kcnp.names"), "the copy to come back");
    });

    testNodes("without the definition there are none, and nothing was forbidden", async () => {
      await cluster.server.kubectl(["delete", "crd", DEFINITION]);
      await pollUntil(async () => !(await copies()).includes("kcnp."), "the policies to be gone");
      const users = [identity.product, identity.controllers].map((name) => `system:serviceaccount:kube-system:${name}`);
      const forbidden = users.flatMap((user) => audit.requests(user)).filter(isForbidden);
      expect(forbidden.map(({ verb, uri, user }) => `${user} ${verb} ${uri}`)).toEqual([]);
    });
  },
);
