import { describe, expect, test } from "bun:test";
import { address } from "../../test/support/ip.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { API_VERSION, identity } from "../identity.ts";
import { profile } from "../model/profile.ts";
import { workloadEndpoint } from "../model/workload-endpoint.ts";
import { endpointChanges, endpointOf, profileChanges } from "./endpoint.ts";
import { readStoredEndpoint } from "./stored-endpoint.ts";
import { workloadOf } from "./workload.ts";

const stamp = { uid: () => "uid-1", now: () => new Date("2026-01-02T03:04:05Z") };
const later = { uid: () => "uid-2", now: () => new Date("2027-01-02T03:04:05Z") };
const call = { networkName: "net", containerId: "abcdef0123456789", ifname: "eth0" };
const pod = { podNamespace: "ns", podName: "web" };
const workload = workloadOf(call, pod, "node1");
const addresses = [address("10.0.0.5"), address("fd00::5")];
const KEY = "/key";

describe("endpointOf()", () => {
  test("records container, node, interface and addresses", () => {
    const endpoint = endpointOf(workload, addresses, stamp);

    expect(endpoint).toEqual({
      apiVersion: API_VERSION,
      kind: "WorkloadEndpoint",
      metadata: {
        name: "node1-k8s-web-eth0",
        namespace: "ns",
        uid: "uid-1",
        creationTimestamp: "2026-01-02T03:04:05.000Z",
        labels: { [`${identity.labelPrefix}namespace`]: "ns", [`${identity.labelPrefix}orchestrator`]: "k8s" },
        annotations: { [`${identity.labelPrefix}network`]: "net" },
      },
      spec: {
        orchestrator: "k8s",
        node: "node1",
        containerID: "abcdef0123456789",
        pod: "web",
        endpoint: "eth0",
        ipNetworks: ["10.0.0.5/32", "fd00::5/128"],
        profiles: ["net"],
        interfaceName: workload.hostInterface,
        mac: expect.stringMatching(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/),
      },
    });
  });

  test("is a valid resource", () => {
    const { metadata, ...rest } = endpointOf(workload, addresses, stamp);

    expect(workloadEndpoint.decode({ ...rest, metadata })).toMatchObject({ ok: true });
  });
});

describe("endpointChanges()", () => {
  const before = endpointOf(workload, addresses, stamp);
  const held = { key: KEY, value: JSON.stringify(before), revision: "7" };

  test("creates a missing record", () => {
    expect(endpointChanges(before, KEY, undefined)).toEqual([{ kind: "create", key: KEY, value: held.value }]);
  });

  test("writes nothing if the record is equal", () => {
    expect(endpointChanges(endpointOf(workload, addresses, later), KEY, held)).toEqual([]);
  });

  test("updates the record of an earlier sandbox, and keeps its UID and creation time", () => {
    const next = workloadOf({ ...call, containerId: "fedcba9876543210" }, pod, "node1");
    const [change] = endpointChanges(endpointOf(next, addresses, later), KEY, held);

    expect(change).toMatchObject({ kind: "update", key: KEY, revision: "7" });
    const stored = readStoredEndpoint({ ...held, value: change && "value" in change ? change.value : "" });
    expect([stored.uid, stored.creationTimestamp, stored.containerId, stored.network]).toEqual([
      "uid-1",
      "2026-01-02T03:04:05.000Z",
      "fedcba9876543210",
      "net",
    ]);
  });
});

describe("profileChanges()", () => {
  test("creates the network's profile once", () => {
    expect(profileChanges(workload, { key: KEY, value: "{}", revision: "1" }, stamp)).toEqual([]);
    const [change] = profileChanges(workload, undefined, stamp);
    const written = profile.read(change && "value" in change ? change.value : "", KEY);

    expect(written.spec).toEqual({
      egress: [{ action: "Allow" }],
      ingress: [{ action: "Allow" }],
      labelsToApply: { net: "" },
    });
  });

  test("allows containers without a pod only traffic from their own network", () => {
    const [change] = profileChanges(workloadOf(call, {}, "n"), undefined, stamp);

    expect(profile.read(change && "value" in change ? change.value : "", KEY).spec.ingress).toEqual([
      { action: "Allow", source: { selector: "has(net)" } },
    ]);
  });
});

describe("readStoredEndpoint()", () => {
  test("refuses a value that is not a record, and names its key", () => {
    const failure = thrownBy(() => readStoredEndpoint({ key: KEY, value: "[", revision: "1" }));

    expect(failure.kind).toBe("record-malformed");
    expect(failure.message).toContain(KEY);
  });
});
