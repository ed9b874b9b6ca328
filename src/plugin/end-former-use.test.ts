import { expect, test } from "bun:test";
import { means, poolChange, request, seed } from "../../test/support/ipam.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { openAllocator } from "../ipam/allocator.ts";
import { KeptInUse } from "../ipam/assign/kept-address.ts";
import { readNodeRecords } from "../ipam/leaks/node-records.ts";
import { KernelError } from "../linux/kernel-error.ts";
import { ownSockets } from "../linux/netlink-socket.ts";
import { endFormerUse } from "./end-former-use.ts";
import type { Session } from "./session.ts";

test("the endpoint of the former container goes with its use of the addresses", async () => {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/24"));
  const allocator = openAllocator(store, means());
  const assign = (containerId: string) =>
    allocator.assign(
      request(`net.${containerId}`, {
        ...{ network: "net", interface: "eth0", node: "node-1", attributes: { container: "web" } },
        keep: { handle: "keep-1", containerId, when: "always", title: 'container "web"' },
      }),
    );
  await assign("c1");
  const failure = await assign("c2").catch((refusal: unknown) => refusal);
  if (!(failure instanceof KeptInUse)) throw new Error("it was not refused");
  const key = failure.uses[0]?.endpointKey ?? "";
  await seed(store, { kind: "put", key, value: '{"containerID":"c1"}' });
  const session = {
    ...{ node: "node-1", settings: { kind: "embedded" }, log: { warning: () => {} } },
    ...{ store: async () => store, allocator: async () => allocator },
    surroundings: {
      now: () => new Date(means().now().getTime() + 3_600_000),
      machineIdentity: () => undefined,
      host: { kernel: ownSockets, netfilter: { withSocket: () => Promise.reject(new KernelError("list tables", 1)) } },
    },
  } as unknown as Session;

  expect(await endFormerUse(failure, session)).toBe(true);
  expect((await readNodeRecords(store, "node-1")).endpoints.size).toBe(0);
  expect((await assign("c2")).addresses).toMatchObject([{ kept: "again" }]);
});
