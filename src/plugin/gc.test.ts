import { describe, expect, test } from "bun:test";
import { API_VERSION } from "../identity.ts";
import { formatAddress } from "../ip/address.ts";
import { REPORTED_ANNOTATION } from "../model/claimed-endpoint.ts";
import { resourceKey } from "../model/keys.ts";
import { heldAddresses } from "./gc.ts";

const NAME = "n1-k8s-web-eth0";
const HOST = { node: "n1", attachmentOf: () => undefined };

async function addressesOf(annotations: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const value = JSON.stringify({
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: { name: NAME, namespace: "shop", annotations },
    spec: { orchestrator: "k8s", node: "n1", pod: "web", ipNetworks: ["10.0.0.5/32", "10.0.0.6/32"] },
  });
  const key = resourceKey("workloadendpoints", { namespace: "shop", name: NAME });
  return (await heldAddresses({ key, value, revision: "1" }, [], HOST)).map(formatAddress);
}

describe("heldAddresses()", () => {
  test("leaves out what only the annotations of a pod claim: it may be another pod's", async () => {
    const reported = { [REPORTED_ANNOTATION]: JSON.stringify({ podIPs: ["10.0.0.5/32"], unreadable: [] }) };
    expect(await addressesOf(reported)).toEqual(["10.0.0.5"]);
  });

  test("has all addresses of a record that only the plugin writes", async () => {
    expect(await addressesOf({})).toEqual(["10.0.0.5", "10.0.0.6"]);
  });
});
