import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { imitateCluster } from "../../../test/support/imitated-cluster.ts";
import { upgradeSite } from "../../../test/support/upgrade-site.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import { clusterObjects } from "../../kube/objects.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { podLabels } from "../../release/workloads/names.ts";
import {
  OPERATOR_DEPLOYMENT,
  planFormerOperator,
  remainingOfFormerOperator,
  replaceFormerOperator,
  requireOperatorCanEnd,
} from "./former-operator.ts";
import { effectiveInstallation } from "./operator-objects.ts";

const DEFINITION = join(import.meta.dir, "../../../deploy/crds/operator/installations.yaml");
const DEFAULT = `/apis/${apiVersionOf(OPERATOR_API)}/installations/default`;
const OVERLAY = `/apis/${apiVersionOf(OPERATOR_API)}/installations/overlay`;
const POOLS = { ipPools: [{ cidr: "10.244.0.0/16" }] };

const installation = (name: string, vendorNetwork: object) => ({
  ...{ apiVersion: apiVersionOf(OPERATOR_API), kind: "Installation", metadata: { name } },
  spec: { vendorNetwork },
});

function operated(network: object, allowsSourceSpoofing: boolean) {
  const cluster = imitateCluster({
    objects: { [DEFAULT]: installation("default", network), [OVERLAY]: installation("overlay", { mtu: 1400 }) },
  });
  const facts = { method: { kind: "operator" }, datastore: "etcd", allowsSourceSpoofing } as const;
  const site = upgradeSite({ objects: clusterObjects(cluster.client), facts });
  const operatorDefinitions = [Bun.YAML.parse(readFileSync(DEFINITION, "utf8")) as KubeObject];
  return { cluster, site: { ...site, release: { ...site.release, operatorDefinitions } } };
}

describe("the source spoofing that former agents allowed", () => {
  test("becomes the switch of the Installation default, which the operator follows; the overlay stays", async () => {
    const { cluster, site } = operated(POOLS, true);
    const { changes } = await planFormerOperator(site);
    expect(changes.map(({ path }) => path)).toEqual([DEFAULT]);
    expect(changes[0]?.diff).toContain("allowedSourcePrefixes: true");
    expect(await effectiveInstallation(site)).toMatchObject({
      installation: { network: { featureControl: { allowedSourcePrefixes: true } } },
    });

    await replaceFormerOperator(site);

    const featureControl = { allowedSourcePrefixes: true };
    expect(cluster.objects.get(DEFAULT).spec.vendorNetwork).toEqual({ ...POOLS, featureControl });
    expect(cluster.objects.get(OVERLAY).spec.vendorNetwork).toEqual({ mtu: 1400 });
    expect(await remainingOfFormerOperator(site)).toEqual([]);
  });

  test.each([
    ["the Installation says otherwise", { ...POOLS, featureControl: { allowedSourcePrefixes: false } }, true],
    ["they did not allow it", POOLS, false],
  ])("changes nothing if %s", async (_, network, allowsSourceSpoofing) => {
    const { cluster, site } = operated(network, allowsSourceSpoofing);
    expect((await planFormerOperator(site)).changes).toEqual([]);
    await replaceFormerOperator(site);

    expect(cluster.writes).toEqual([]);
  });
});

describe("requireOperatorCanEnd()", () => {
  const matchLabels = { "k8s-app": "former-operator" };
  const located = (status: "True" | "False" | "Unknown", selector: Readonly<Record<string, string>> = matchLabels) => {
    const cluster = imitateCluster({
      objects: {
        [OPERATOR_DEPLOYMENT]: { metadata: { name: identity.operator }, spec: { selector: { matchLabels: selector } } },
        [`/api/v1/namespaces/${identity.operator}/pods/former`]: {
          metadata: { name: "former", namespace: identity.operator, labels: selector },
          spec: { nodeName: "n1" },
        },
        "/api/v1/nodes/n1": { metadata: { name: "n1" }, status: { conditions: [{ type: "Ready", status }] } },
      },
    });
    return upgradeSite({ objects: clusterObjects(cluster.client) });
  };

  test("refuses to lock the datastore while the machine of a former operator is silent, and says what to do", async () => {
    expect(await requireOperatorCanEnd(located("Unknown")).catch((failure) => failure)).toMatchObject({
      message: expect.stringMatching(/on Node n1, where it cannot end: the Node is not ready/),
      details: expect.stringContaining("delete the Node n1"),
    });
  });

  test.each([
    ["its kubelet reports", located("True")],
    ["only its network is not ready", located("False")],
    ["the operator is of this product, which is changed in place", located("Unknown", podLabels(identity.operator))],
  ])("accepts that %s", async (_, site) => {
    await requireOperatorCanEnd(site);
  });
});
