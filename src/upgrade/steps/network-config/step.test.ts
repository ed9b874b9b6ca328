import { describe, expect, test } from "bun:test";
import { fakeCluster } from "../../../../test/support/fake-cluster.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import { clusterObjects } from "../../../kube/objects.ts";
import { parseNetworkList } from "../../live-network-configs.ts";
import { listState } from "./raise-list.ts";
import { networkConfigStep } from "./step.ts";

const OLD = `{
  "name": "pods",
  "cniVersion": "0.2.0",
  "plugins": [
    { "type": "vendor", "mtu": __CNI_MTU__, "nodename": "__KUBERNETES_NODE_NAME__" },
    { "type": "portmap", "capabilities": {"portMappings": true} }
  ]
}`;
const PATH = "/api/v1/namespaces/kube-system/configmaps/vendor-config";

/** The fake knows no JSON patches: this does what the real API does with a test and a replacement. */
function cluster(text: string) {
  const object = { metadata: { name: "vendor-config" }, data: { cni_network_config: text } };
  const fake = fakeCluster({
    objects: { [PATH]: object },
    respond({ method, path, body }) {
      if (method !== "PATCH") return undefined;
      const stored = fake.objects.get(path);
      const [check, change] = JSON.parse(body ?? "[]");
      if (stored.data.cni_network_config !== check.value) return { status: 422, text: "{}" };
      stored.data.cni_network_config = change.value;
      return { status: 200, text: JSON.stringify(stored) };
    },
  });
  const site = upgradeSite({ objects: clusterObjects(fake.client) });
  const writes = () => fake.requests.filter((request) => !request.startsWith("GET"));
  return { site, writes, text: () => fake.objects.get(PATH).data.cni_network_config as string };
}

describe("network-config", () => {
  test("raises the version of a list that is too old, changes nothing else, and goes back", async () => {
    const { site, text, writes } = cluster(OLD);
    const plan = await networkConfigStep.plan(site);
    if (plan === undefined) throw new Error("the step is needed");
    expect(plan.changes).toEqual([
      {
        action: "update",
        what: "ConfigMap kube-system/vendor-config",
        path: PATH,
        diff: '-  "cniVersion": "0.2.0",\n+  "cniVersion": "0.3.1",',
      },
    ]);
    expect(await networkConfigStep.remaining(site, plan)).toHaveLength(1);

    await networkConfigStep.act(site, plan);
    expect(text()).toBe(OLD.replace('"0.2.0"', '"0.3.1"'));
    expect(await networkConfigStep.remaining(site, plan)).toEqual([]);
    await networkConfigStep.act(site, plan);
    expect(writes()).toHaveLength(1);

    await networkConfigStep.rollback?.(site, plan);
    expect(text()).toBe(OLD);
  });

  test("leaves a config alone that somebody has changed since", async () => {
    const { site, text } = cluster(OLD);
    const plan = await networkConfigStep.plan(site);
    if (plan === undefined) throw new Error("the step is needed");
    const edited = OLD.replace('"0.2.0"', '"1.0.0"');
    await site.objects.patchJson(PATH, [{ value: OLD }, { value: edited }]);
    await networkConfigStep.rollback?.(site, plan);
    expect(text()).toBe(edited);
  });

  test("is not needed by a sufficient version, by a single plugin and with the operator", async () => {
    expect(await networkConfigStep.plan(cluster(OLD.replace("0.2.0", "0.3.0")).site)).toBeUndefined();
    expect(await networkConfigStep.plan(cluster('{"type":"vendor","cniVersion":"0.2.0"}').site)).toBeUndefined();
    const { site } = cluster(OLD);
    const operated = { ...site, facts: { ...site.facts, method: { kind: "operator" } as const } };
    expect(await networkConfigStep.plan(operated)).toBeUndefined();
  });

  test("stops at a config that cannot be read", async () => {
    const plan = await networkConfigStep.plan(cluster("{ nonsense").site);
    expect(plan?.obstacles[0]?.message).toContain("ConfigMap kube-system/vendor-config");
    expect(plan?.changes).toEqual([]);
  });
});

describe("listState()", () => {
  test.each([
    [
      "a delegate with a version of its own",
      '{"plugins":[{"delegate":{"cniVersion":"0.3.1"}},{}],"cniVersion":"0.1.0"}',
    ],
    ["no version", '{ "plugins": [{"type":"a"},{"type":"b"}] }'],
    ["an empty version", '{ "cniVersion": "", "plugins": [{"type":"a"},{"type":"b"}] }'],
  ])("raises a list with %s", (_, text) => {
    const state = listState(text);
    const raised = state.kind === "too old" ? parseNetworkList(state.raised) : undefined;
    expect(raised).toEqual({ ...parseNetworkList(text), cniVersion: "0.3.1" });
  });
});
