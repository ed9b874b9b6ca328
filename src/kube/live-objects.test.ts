import { expect, test } from "bun:test";
import type { KubeClient } from "./api.ts";
import { liveObjects } from "./live-objects.ts";

test("the pods of a virtual machine are those that it owns, among those of all machines of its namespace", async () => {
  const asked: unknown[] = [];
  const podOf = (pod: string, name: string) => ({
    metadata: {
      ...{ namespace: "shop", name: pod },
      ownerReferences: [{ apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name, controller: true }],
    },
  });
  const request: KubeClient["request"] = async ({ path, query }) => {
    asked.push([path, query?.["labelSelector"]]);
    return { status: 200, text: JSON.stringify({ items: [podOf("a", "desktop"), podOf("b", "other")] }) } as never;
  };
  const found = await liveObjects({ request }).podsOfMachine({ namespace: "shop", name: "desktop" });

  expect(asked).toEqual([["/api/v1/namespaces/shop/pods", "kubevirt.io=virt-launcher"]]);
  expect(found).toMatchObject([{ name: "a", machine: "desktop" }]);
});
