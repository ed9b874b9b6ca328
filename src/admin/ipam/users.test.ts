import { describe, expect, test } from "bun:test";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { productMapping } from "../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { API_VERSION } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import { recordedAnnotation } from "../../model/recorded-annotations.ts";
import { describeUser, findEndpoints } from "./address-users.ts";
import { describeAllocation } from "./blocks.ts";

describe("describeAllocation()", () => {
  test.each([
    [{ pod: "web-0", namespace: "prod", node: "n1" }, "10.0.0.5 (pod prod/web-0 on node n1)"],
    [{ container: "web", node: "n1" }, '10.0.0.5 (container "web" on node n1)'],
    [{}, '10.0.0.5 (handle "net.abc")'],
  ])("of %p is %p", (secondary, expected) => {
    const [address, block] = [parseAddress("10.0.0.5"), parsePrefix("10.0.0.0/26")];
    if (!address || !block) throw new Error("unreadable");

    expect(describeAllocation({ address, block, handle: "net.abc", sequenceNumber: undefined, secondary })).toBe(
      expected,
    );
  });
});

describe("describeUser()", () => {
  test.each([
    [{ pod: "web-0" }, "(pod prod/web-0)"],
    [{ workload: "web", containerID: "abc" }, '(container "web")'],
    [{ containerID: "abc" }, '(container "abc")'],
  ])("of %p ends with %p", (spec, expected) => {
    const metadata = { namespace: "prod", name: "x" };
    const endpoint = { apiVersion: API_VERSION, kind: "WorkloadEndpoint", metadata, spec } as const;

    expect(describeUser({ endpoint })).toEndWith(expected);
  });
});

describe("findEndpoints()", () => {
  test("an address that only the annotations of a pod claim is not in use by it", async () => {
    const client = startFakeApi().connect();
    const store = openKubeStore({ api: client, mappings: productMapping(() => "m"), close: () => client.close() });
    const pod = {
      metadata: {
        name: "web",
        namespace: "shop",
        annotations: { [recordedAnnotation("podIPs")]: "10.0.0.5/32,10.0.0.6/32" },
      },
      spec: { nodeName: "n1", containers: [] },
      status: { podIPs: [{ ip: "10.0.0.5" }] },
    };
    await client.request({ method: "POST", path: "/api/v1/namespaces/shop/pods", body: JSON.stringify(pod) });

    expect((await findEndpoints(store)).map(({ addresses }) => addresses)).toEqual([["10.0.0.5"]]);
    await store.close();
  });
});
