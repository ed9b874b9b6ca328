import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { obstaclesIn } from "./obstacles.ts";

const { nodeAgent, systemNamespace, product } = identity;

function daemonSet(namespace: string, name: string) {
  return { metadata: { namespace, name } };
}

describe("obstaclesIn()", () => {
  test("what a manifest installed is removed from the nodes first, and pools and policies are kept", () => {
    const [{ isOwn, remedy } = { isOwn: false, remedy: "" }] = obstaclesIn([daemonSet("kube-system", nodeAgent)]);
    const commands = remedy.split("\n").filter((line) => line.startsWith("  "));

    expect(isOwn).toBe(true);
    expect(commands.map((line) => line.trim())).toEqual([
      `kubectl --namespace kube-system delete daemonset/${nodeAgent} deployment/${identity.controllers}`,
      `kubectl apply --server-side -f ${product}-uninstall.yaml`,
      `kubectl --namespace kube-system rollout status daemonset/${nodeAgent}-uninstall`,
      `kubectl delete -f ${product}-uninstall.yaml`,
      `kubectl delete -f FILE --selector app.kubernetes.io/part-of=${product}`,
    ]);
  });

  test("what the operator installed is not an obstacle", () => {
    expect(obstaclesIn([daemonSet(systemNamespace, nodeAgent)])).toEqual([]);
  });
});
