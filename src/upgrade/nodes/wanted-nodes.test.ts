import { describe, expect, test } from "bun:test";
import { isWantedOn } from "./wanted-nodes.ts";

const daemonSet = (podSpec: object) => ({ spec: { template: { spec: podSpec } } });
const node = (labels: object, taints: readonly object[] = []) => ({
  metadata: { name: "one", labels },
  spec: { taints },
});
const required = (...nodeSelectorTerms: readonly object[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const expression = (key: string, operator: string, ...values: readonly string[]) => ({ key, operator, values });
const labelled = (...matchExpressions: readonly object[]) => required({ matchExpressions });
const taint = (key: string, effect: string, value?: string) => ({ key, effect, value });
const condition = (name: string, effect: string) => taint(`node.kubernetes.io/${name}`, effect);

describe("isWantedOn()", () => {
  test.each<[string, object, object, boolean]>([
    ["no restriction", {}, {}, true],
    ["the node selector", { nodeSelector: { os: "linux" } }, { os: "linux" }, true],
    ["another node selector", { nodeSelector: { os: "linux" } }, { os: "windows" }, false],
    ["another node by its name", { nodeName: "two" }, {}, false],
    ["In", labelled(expression("type", "In", "a", "b")), { type: "b" }, true],
    ["In, another value", labelled(expression("type", "In", "a")), { type: "b" }, false],
    ["In, no label", labelled(expression("type", "In", "a")), {}, false],
    ["NotIn", labelled(expression("type", "NotIn", "virtual-kubelet")), { type: "virtual-kubelet" }, false],
    ["NotIn, no label", labelled(expression("type", "NotIn", "virtual-kubelet")), {}, true],
    ["Exists", labelled(expression("type", "Exists")), { type: "" }, true],
    ["Exists, no label", labelled(expression("type", "Exists")), {}, false],
    ["DoesNotExist", labelled(expression("type", "DoesNotExist")), { type: "a" }, false],
    ["DoesNotExist, no label", labelled(expression("type", "DoesNotExist")), {}, true],
    ["Gt", labelled(expression("cores", "Gt", "4")), { cores: "16" }, true],
    ["Gt, the same", labelled(expression("cores", "Gt", "4")), { cores: "4" }, false],
    ["Lt", labelled(expression("cores", "Lt", "4")), { cores: "3" }, true],
    ["Lt, not a number", labelled(expression("cores", "Lt", "4")), { cores: "few" }, false],
    ["an unknown operator", labelled(expression("type", "Like", "a")), { type: "a" }, false],
    ["all expressions of a term", labelled(expression("a", "Exists"), expression("b", "Exists")), { a: "1" }, false],
    [
      "any of the terms",
      required({ matchExpressions: [expression("a", "Exists")] }, { matchExpressions: [expression("b", "Exists")] }),
      { b: "1" },
      true,
    ],
    ["no terms", required(), {}, false],
    ["an empty term", required({}), {}, false],
    ["its name", required({ matchFields: [expression("metadata.name", "In", "one")] }), {}, true],
    ["another name", required({ matchFields: [expression("metadata.name", "NotIn", "one")] }), {}, false],
    [
      "preferred affinity only",
      {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 1, preference: { matchExpressions: [expression("a", "Exists")] } },
            ],
          },
        },
      },
      {},
      true,
    ],
  ])("labels: %s", (_, podSpec, labels, isWanted) => {
    expect(isWantedOn(daemonSet(podSpec), node(labels))).toBe(isWanted);
  });

  test.each<[string, object, object, boolean]>([
    ["NoSchedule", {}, taint("own", "NoSchedule"), false],
    ["NoExecute", {}, taint("own", "NoExecute"), false],
    ["PreferNoSchedule", {}, taint("own", "PreferNoSchedule"), true],
    ["everything is tolerated", { tolerations: [{ operator: "Exists" }] }, taint("own", "NoExecute", "x"), true],
    [
      "any value of a key",
      { tolerations: [{ key: "own", operator: "Exists" }] },
      taint("own", "NoSchedule", "x"),
      true,
    ],
    ["another key", { tolerations: [{ key: "other", operator: "Exists" }] }, taint("own", "NoSchedule"), false],
    [
      "another effect",
      { tolerations: [{ operator: "Exists", effect: "NoExecute" }] },
      taint("own", "NoSchedule"),
      false,
    ],
    ["the same value", { tolerations: [{ key: "own", value: "x" }] }, taint("own", "NoSchedule", "x"), true],
    ["no value in both", { tolerations: [{ key: "own", operator: "Equal" }] }, taint("own", "NoSchedule"), true],
    ["another value", { tolerations: [{ key: "own", value: "y" }] }, taint("own", "NoSchedule", "x"), false],
    ["cordoned", {}, condition("unschedulable", "NoSchedule"), true],
    ["unreachable", {}, condition("unreachable", "NoExecute"), true],
    ["unreachable, for new pods", {}, condition("unreachable", "NoSchedule"), false],
    ["pressure", {}, condition("disk-pressure", "NoSchedule"), true],
    ["no network", {}, condition("network-unavailable", "NoSchedule"), false],
    ["no network yet, on the host's", { hostNetwork: true }, condition("network-unavailable", "NoSchedule"), true],
  ])("taints: %s", (_, podSpec, given, isWanted) => {
    expect(isWantedOn(daemonSet(podSpec), node({}, [given]))).toBe(isWanted);
  });
});
