/** The operator removes an Installation in the order that lets pods be torn down, and nobody else's things. */
import { describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import type { testNeeding } from "../support/needs.ts";
import {
  ACCOUNT,
  ADDRESS_LIST,
  bindingPath,
  CONFIGURATIONS,
  condition,
  DAEMON_SET,
  DEFAULT,
  DEPLOYMENT,
  finishNamespace,
  PODS,
  reportDaemonSet,
  SYSTEM_NAMESPACE,
  UNINSTALL,
} from "../support/operator-objects.ts";
import { type OperatorSite, POOLS, STATUSES } from "../support/operator-site.ts";

const isGone = (object: unknown) => object === undefined;
const exists = (object: unknown) => object !== undefined;

export function deletionTests(site: () => OperatorSite, testServer: ReturnType<typeof testNeeding>): void {
  describe("the deletion of an Installation", () => {
    testServer("waits for the pods, cleans up the nodes, and removes what both needed at the end", async () => {
      await createNode("node-1");
      await createPod("agent", identity.nodeAgent);
      const operator = await site().startOperator();
      await site().remove(DEFAULT);
      await site().until(DAEMON_SET, isGone, "the DaemonSet to be deleted");
      expect(await site().read(DEPLOYMENT)).toBeUndefined();
      await operator.untilIdle();
      // Its pod is still there: nothing that it needs goes, and the node is not cleaned up yet.
      expect([await site().read(UNINSTALL), exists(await site().read(ACCOUNT))]).toEqual([undefined, true]);
      expect(condition(await site().read(DEFAULT), "Progressing").message).toContain("1 pod");

      await removePod("agent");
      await site().until(UNINSTALL, exists, "the DaemonSet that cleans up the nodes");
      await reportDaemonSet(site(), UNINSTALL, 1);
      await createPod("cleaner", `${identity.nodeAgent}-uninstall`);
      await operator.untilIdle();
      expect(await site().read(ACCOUNT)).toBeDefined();
      await site().patch(`${PODS}/cleaner/status`, {
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
      });
      await site().until(DEFAULT, isGone, "the Installation to be gone");
      await operator.untilIdle();

      const policies = [bindingPath("chosen-addresses"), bindingPath("recorded-addresses"), ADDRESS_LIST];
      const left = await Promise.all([UNINSTALL, ACCOUNT, ...policies].map((path) => site().read(path)));
      expect(left).toEqual([undefined, undefined, undefined, undefined, undefined]);
      expect((await site().read(SYSTEM_NAMESPACE)).metadata.deletionTimestamp).toBeDefined();
      expect([await site().list(STATUSES), await site().list(CONFIGURATIONS)]).toEqual([[], []]);
      expect((await site().list(POOLS)).length).toBe(2);
      await operator.stop();
      await removePod("cleaner");
      await finishNamespace(site());
    });

    async function createNode(name: string): Promise<void> {
      const node = { apiVersion: "v1", kind: "Node", metadata: { name } };
      await site().send({ method: "POST", path: "/api/v1/nodes", body: JSON.stringify(node) });
    }

    async function createPod(name: string, workload: string): Promise<void> {
      const labels = { "app.kubernetes.io/name": workload, "app.kubernetes.io/part-of": identity.product };
      const spec = {
        serviceAccountName: identity.nodeAgent,
        nodeName: "node-1",
        containers: [{ name: "main", image: "none" }],
      };
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec };
      await site().send({ method: "POST", path: PODS, body: JSON.stringify(pod) });
    }

    async function removePod(name: string): Promise<void> {
      await site().send({ method: "DELETE", path: `${PODS}/${name}`, query: { gracePeriodSeconds: "0" } });
    }
  });
}
