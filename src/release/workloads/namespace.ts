import type { KubeObject } from "../kube-object.ts";

/** The node agent is privileged: where the cluster forbids that, the namespace allows it. */
export function namespaceObject(name: string): KubeObject {
  const level = (mode: string) => [`pod-security.kubernetes.io/${mode}`, "privileged"] as const;
  const labels = Object.fromEntries(["enforce", "audit", "warn"].map(level));
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}
