/** Whether a DaemonSet has a pod for a node, as the orchestrator's controller of DaemonSets decides it. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { fieldsIn, itemsIn, textIn } from "../object-fields.ts";
import { podSpecOf } from "../pod-template.ts";

export function isWantedOn(daemonSet: Fields, node: Fields): boolean {
  const podSpec = podSpecOf(daemonSet);
  const nodeName = textIn(podSpec, "nodeName") ?? "";
  return (
    (nodeName === "" || nodeName === textIn(node["metadata"], "name")) &&
    isSelected(podSpec, node) &&
    isAdmitted(podSpec, node)
  );
}

/** By the node selector and the required affinity; a preferred one does not matter. */
function isSelected(podSpec: Fields, node: Fields): boolean {
  const labels = fieldsIn(node, "metadata", "labels");
  const selector = Object.entries(fieldsIn(podSpec, "nodeSelector"));
  if (!selector.every(([name, value]) => labels[name] === value)) return false;
  const required = fieldsIn(podSpec, "affinity", "nodeAffinity")["requiredDuringSchedulingIgnoredDuringExecution"];
  if (!isObject(required)) return true;
  const fields = { "metadata.name": textIn(node["metadata"], "name") };
  return itemsIn(required, "nodeSelectorTerms").some((term) => {
    const expressions = itemsIn(term, "matchExpressions");
    const fieldExpressions = itemsIn(term, "matchFields");
    return (
      expressions.length + fieldExpressions.length > 0 &&
      expressions.every((expression) => isMatch(expression, labels)) &&
      fieldExpressions.every((expression) => isMatch(expression, fields))
    );
  });
}

function isMatch(expression: Fields, labels: Fields): boolean {
  const { operator, values: given } = expression;
  const value = textIn(labels, textIn(expression, "key") ?? "");
  const values: readonly unknown[] = Array.isArray(given) ? given : [];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return value !== undefined && wholeNumber(value) > wholeNumber(values[0]);
    case "Lt":
      return value !== undefined && wholeNumber(value) < wholeNumber(values[0]);
    default:
      return false;
  }
}

function wholeNumber(value: unknown): number {
  return typeof value === "string" && /^[-+]?\d+$/.test(value) ? Number(value) : Number.NaN;
}

/** The controller gives these to each pod of a DaemonSet. */
const OWN_TOLERATIONS: readonly Fields[] = [
  ...["not-ready", "unreachable"].map((name) => ({ key: `node.kubernetes.io/${name}`, effect: "NoExecute" })),
  ...["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"].map((name) => ({
    key: `node.kubernetes.io/${name}`,
    effect: "NoSchedule",
  })),
].map((toleration) => ({ ...toleration, operator: "Exists" }));
const HOST_NETWORK_TOLERATION: Fields = {
  key: "node.kubernetes.io/network-unavailable",
  operator: "Exists",
  effect: "NoSchedule",
};

/** Whether every taint that keeps pods away is tolerated. */
function isAdmitted(podSpec: Fields, node: Fields): boolean {
  const tolerations = [
    ...itemsIn(podSpec, "tolerations"),
    ...OWN_TOLERATIONS,
    ...(podSpec["hostNetwork"] === true ? [HOST_NETWORK_TOLERATION] : []),
  ];
  return itemsIn(node["spec"], "taints")
    .filter(({ effect }) => effect === "NoSchedule" || effect === "NoExecute")
    .every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)));
}

function tolerates(toleration: Fields, taint: Fields): boolean {
  const [effect, key] = [textIn(toleration, "effect") ?? "", textIn(toleration, "key") ?? ""];
  if (effect !== "" && effect !== taint["effect"]) return false;
  if (key !== "" && key !== taint["key"]) return false;
  if (toleration["operator"] === "Exists") return true;
  const isEqual = (toleration["operator"] ?? "Equal") === "Equal" && key !== "";
  return isEqual && (textIn(toleration, "value") ?? "") === (textIn(taint, "value") ?? "");
}
