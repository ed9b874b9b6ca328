import { describe, expect, test } from "bun:test";
import { imitateCluster } from "../../../../test/support/imitated-cluster.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import { identity } from "../../../identity.ts";
import type { KubeRequest } from "../../../kube/api.ts";
import { clusterObjects } from "../../../kube/objects.ts";
import type { Facts } from "../../engine/facts.ts";
import { STEPS } from "../../steps.ts";
import { addressListStep } from "./step.ts";

const { product, annotationPrefix } = identity;
const LIST = `/api/v1/namespaces/kube-system/configmaps/${product}-address-list`;
const BINDING = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/${product}-chosen-addresses`;

const choosing = (namespace: string, ...names: readonly string[]) => ({
  metadata: { namespace, annotations: Object.fromEntries(names.map((name) => [`${annotationPrefix}${name}`, "[]"])) },
});
const template = (namespace: string, name: string) => ({
  metadata: { namespace },
  spec: { template: choosing(namespace, name) },
});

/** As the lists of all namespaces have them. */
const USERS = {
  "/api/v1/pods/a": choosing("routers", "ipAddrsNoIpam", "allowedSourcePrefixes"),
  "/api/v1/pods/b": choosing("routers", "ipAddrsNoIpam"),
  "/api/v1/pods/c": { metadata: { namespace: "plain", annotations: { other: "x" } } },
  "/api/v1/pods/d": { metadata: { namespace: "bare" } },
  "/apis/apps/v1/deployments/web": template("scaled", "floatingIPs"),
  "/apis/apps/v1/statefulsets/db": template("state", "floatingIPs"),
  "/apis/apps/v1/daemonsets/probe": template("each", "allowedSourcePrefixes"),
  "/apis/batch/v1/cronjobs/copy": {
    metadata: { namespace: "nightly" },
    spec: { jobTemplate: { spec: { template: choosing("nightly", "ipAddrsNoIpam") } } },
  },
};

function siteWith(objects: Readonly<Record<string, object>>, facts: Partial<Facts> = {}) {
  const cluster = imitateCluster({ objects });
  const requests: KubeRequest[] = [];
  const client = {
    request: (request: KubeRequest) => {
      requests.push(request);
      return cluster.client.request(request);
    },
  };
  return { cluster, requests, site: upgradeSite({ objects: clusterObjects(client), facts }) };
}

function networkConfig(features: object) {
  const config = JSON.stringify({ plugins: [{ type: product, feature_control: features }] });
  return { "/api/v1/namespaces/kube-system/configmaps/cni-config": { metadata: {}, data: { config } } };
}

describe("address-list", () => {
  test("enters the namespaces of all who use the annotations, before anything that brings the policies", async () => {
    const { cluster, site } = siteWith(USERS);
    const plan = await addressListStep.plan(site);
    if (plan === undefined) throw new Error("the step is needed");
    expect(plan.changes).toMatchObject([{ action: "create", path: LIST }]);
    expect(await addressListStep.remaining(site, plan)).toHaveLength(6);

    await addressListStep.act(site, plan);

    expect(cluster.objects.get(LIST).data).toEqual({
      ipAddrsNoIpam: "nightly\nrouters\n",
      floatingIPs: "scaled\nstate\n",
      allowedSourcePrefixes: "each\nrouters\n",
    });
    expect(await addressListStep.remaining(site, plan)).toEqual([]);
    const names = STEPS.map(({ name }) => name);
    for (const later of ["chart", "operator", "manifest"]) {
      expect(names.indexOf("address-list")).toBeLessThan(names.indexOf(later));
    }
  });

  test("keeps what the list has, and writes nothing a second time", async () => {
    const list = {
      metadata: { name: `${product}-address-list`, namespace: "kube-system" },
      data: { ipAddrsNoIpam: "# ours\nrouters\nteam/account", floatingIPs: "scaled\n" },
    };
    const { cluster, site } = siteWith({ ...USERS, [LIST]: list });
    const plan = await addressListStep.plan(site);
    if (plan === undefined) throw new Error("the step is needed");
    await addressListStep.act(site, plan);
    const { length } = cluster.writes;
    await addressListStep.act(site, plan);

    expect(cluster.writes).toHaveLength(length);
    expect(cluster.objects.get(LIST).data).toEqual({
      ipAddrsNoIpam: "# ours\nrouters\nteam/account\nnightly\n",
      floatingIPs: "scaled\nstate\n",
      allowedSourcePrefixes: "each\nrouters\n",
    });
  });

  test("reads pods without their specs, a page at a time", async () => {
    const { requests, site } = siteWith(USERS);
    await addressListStep.plan(site);
    const [pods] = requests.filter(({ path }) => path === "/api/v1/pods");

    expect(pods?.accept).toContain("as=PartialObjectMetadataList");
    expect(pods?.query).toMatchObject({ limit: "500" });
  });

  test("enters nobody for an annotation whose switch is off", async () => {
    const entriesWith = async (features: object, facts: Partial<Facts> = {}) => {
      const plan = await addressListStep.plan(siteWith({ ...USERS, ...networkConfig(features) }, facts).site);
      return plan?.data["entries"];
    };
    expect(await entriesWith({})).toBeUndefined();
    expect(await entriesWith({ floating_ips: true, ip_addrs_no_ipam: false })).toEqual({
      floatingIPs: ["scaled", "state"],
    });
    // This release switches it on then.
    expect(await entriesWith({}, { allowsSourceSpoofing: true })).toEqual({
      allowedSourcePrefixes: ["each", "routers"],
    });
  });

  test("is not needed if nobody chooses, or if the policies count already", async () => {
    const nobody = { "/api/v1/pods/c": { metadata: { namespace: "plain" } } };
    expect(await addressListStep.plan(siteWith(nobody).site)).toBeUndefined();
    const counting = { ...USERS, [BINDING]: { metadata: { name: `${product}-chosen-addresses` } } };
    expect(await addressListStep.plan(siteWith(counting).site)).toBeUndefined();
  });
});
