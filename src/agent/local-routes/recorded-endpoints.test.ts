import { describe, expect, test } from "bun:test";
import { seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { hostInterfaceName } from "../../model/host-interface-name.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { readRoutedEndpoints } from "./recorded-endpoints.ts";

const keyOf = (name: string) => ENDPOINT.key({ namespace: "shop", name });
const record = (name: string, ipNetworks: readonly string[]) => ({
  kind: "put" as const,
  key: keyOf(`n1-k8s-${name}-eth0`),
  value: JSON.stringify({
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: { name: `n1-k8s-${name}-eth0`, namespace: "shop" },
    spec: { ...{ node: "n1", containerID: "c1", endpoint: "eth0", interfaceName: `vend${name}` }, ipNetworks },
  }),
});
const podInterface = (name: string) =>
  hostInterfaceName({ containerId: "", ifname: "eth0", pod: { namespace: "shop", name } });

describe("readRoutedEndpoints()", () => {
  test("an unreadable record concerns only the interface of its own pod", async () => {
    const store = openMemory();
    await seed(store, record("web", ["10.0.0.5/32"]), record("evil", ["garbage"]));
    await seed(store, { kind: "put", key: keyOf("n1-cni-c7-eth0"), value: "{" });
    await seed(store, { kind: "put", key: keyOf("n2-k8s-other-eth0"), value: "{" });
    const read = await readRoutedEndpoints(store, { node: "n1", settled: (endpoint) => endpoint });

    expect(read?.endpoints.map(({ interfaceName }) => interfaceName)).toEqual(["vendweb"]);
    expect(read?.undecided).toEqual(
      new Set([podInterface("evil"), hostInterfaceName({ containerId: "c7", ifname: "eth0" })]),
    );
  });

  test("so does one that cannot be decided yet", async () => {
    const store = openMemory();
    await seed(store, record("web", ["10.0.0.5/32"]), record("new", ["10.0.0.6/32"]));
    const settled = (endpoint: WorkloadEndpoint) => (endpoint.spec.interfaceName === "vendnew" ? undefined : endpoint);
    const read = await readRoutedEndpoints(store, { node: "n1", settled });

    expect(read?.endpoints).toHaveLength(1);
    expect(read?.undecided).toEqual(new Set([podInterface("new")]));
  });

  test("is unknown if the datastore cannot be reached", async () => {
    const store = { read: () => Promise.reject(new Error("no datastore")) };
    expect(await readRoutedEndpoints(store, { node: "n1", settled: (endpoint) => endpoint })).toBeUndefined();
  });
});
