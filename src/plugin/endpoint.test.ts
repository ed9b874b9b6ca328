import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../test/support/ip.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import type { Change, Entry } from "../datastore/datastore.ts";
import { API_VERSION, identity } from "../identity.ts";
import { podEndpointOf } from "../model/pod-endpoint.ts";
import { profile } from "../model/profile.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../model/workload-endpoint.ts";
import { NO_POD_FACTS } from "./add-request.ts";
import type { AnnotationRequests } from "./annotations.ts";
import { endpointChanges, endpointOf, profileChanges } from "./endpoint.ts";
import { readStoredEndpoint } from "./stored-endpoint.ts";
import { workloadOf } from "./workload.ts";

const stamp = { uid: () => "uid-1", now: () => new Date("2026-01-02T03:04:05Z") };
const later = { uid: () => "uid-2", now: () => new Date("2027-01-02T03:04:05Z") };
const call = { networkName: "net", containerId: "abcdef0123456789", ifname: "eth0" };
const pod = { podNamespace: "ns", podName: "web" };
const workload = workloadOf(call, pod, "node1");
const addresses = [address("10.0.0.5"), address("fd00::5")];
const sources = { workload, podFacts: NO_POD_FACTS, addresses };
const KEY = "/key";

describe("endpointOf()", () => {
  test("records container, node, interface and addresses", () => {
    const endpoint = endpointOf(sources, stamp);

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
    const { metadata, ...rest } = endpointOf(sources, stamp);

    expect(workloadEndpoint.decode({ ...rest, metadata })).toMatchObject({ ok: true });
  });
});

describe("endpointOf() with annotations", () => {
  const withRequests = (requests: Omit<AnnotationRequests, "pools">) =>
    endpointOf({ ...sources, podFacts: { requests: { pools: {}, ...requests } } }, stamp);

  test("records each floating IP for the pod's address of its family", () => {
    const value = ["192.0.2.8", "192.0.2.9", "2001:db8::8"].map(address);
    const endpoint = withRequests({ floatingAddresses: { value, place: "annotation" } });

    expect(endpoint.spec.ipNATs).toEqual([
      { internalIP: "10.0.0.5", externalIP: "192.0.2.8" },
      { internalIP: "10.0.0.5", externalIP: "192.0.2.9" },
      { internalIP: "fd00::5", externalIP: "2001:db8::8" },
    ]);
    expect(workloadEndpoint.read(JSON.stringify(endpoint), KEY).spec.ipNATs).toHaveLength(3);
  });

  test("records the source prefixes, and refuses those of a family that the pod does not have", () => {
    const sourcePrefixes = {
      value: ["198.51.100.0/24", "2001:db8::/64"].map(prefix),
      place: 'annotation "x" of pod "a/b"',
    };
    const endpoint = withRequests({ sourcePrefixes });

    expect(workloadEndpoint.read(JSON.stringify(endpoint), KEY).spec.allowSpoofedSourcePrefixes).toEqual([
      "198.51.100.0/24",
      "2001:db8::/64",
    ]);
    const podFacts = { requests: { pools: {}, sourcePrefixes } };
    const error = thrownBy(() => endpointOf({ ...sources, podFacts, addresses: [address("10.0.0.5")] }, stamp));
    expect([error.kind, error.message]).toEqual([
      "annotation-invalid",
      expect.stringContaining('annotation "x" of pod "a/b": "2001:db8::/64": the pod has no IPv6 address'),
    ]);
  });

  test("refuses a floating IP of a family that the pod does not have", () => {
    const podFacts = {
      requests: {
        pools: {},
        floatingAddresses: { value: [address("2001:db8::8")], place: 'annotation "x" of pod "a/b"' },
      },
    };
    const error = thrownBy(() => endpointOf({ workload, podFacts, addresses: [address("10.0.0.5")] }, stamp));

    expect(error.kind).toBe("annotation-invalid");
    expect(error.message).toContain('annotation "x" of pod "a/b": "2001:db8::8": the pod has no IPv6 address');
  });

  test("says which addresses IPAM does not record", () => {
    const endpoint = withRequests({ addressesWithoutIpam: { value: addresses, place: "annotation" } });
    const entry = { key: KEY, value: JSON.stringify(endpoint), revision: "1" };

    expect(readStoredEndpoint(entry).withoutIpam).toEqual(new Set(["10.0.0.5", "fd00::5"]));
  });

  test("records what the pod has if the orchestrator's policy is used", () => {
    const endpoint = podEndpointOf({
      metadata: { namespace: "ns", name: "web", generateName: "web-", labels: { app: "web" } },
      spec: {
        serviceAccountName: "shop",
        containers: [
          { ports: [{ name: "http", containerPort: 8080 }, { containerPort: 9090 }] },
          { ports: [{ containerPort: 53, protocol: "UDP", hostPort: 5353 }] },
        ],
        initContainers: [{ ports: [{ name: "debug", containerPort: 40, protocol: "SCTP" }] }],
      },
    });
    const { metadata, spec } = endpointOf({ ...sources, podFacts: { requests: { pools: {} }, endpoint } }, stamp);

    expect(metadata.generateName).toBe("web-");
    expect(metadata.labels).toEqual({
      app: "web",
      [`${identity.labelPrefix}namespace`]: "ns",
      [`${identity.labelPrefix}orchestrator`]: "k8s",
      [`${identity.labelPrefix}serviceaccount`]: "shop",
    });
    expect(spec.profiles).toEqual(["kns.ns", "ksa.ns.shop"]);
    expect(spec.serviceAccountName).toBe("shop");
    expect(spec.ports).toEqual([
      { name: "http", protocol: "TCP", port: 8080 },
      { protocol: "UDP", port: 53, hostPort: 5353 },
      { name: "debug", protocol: "SCTP", port: 40 },
    ]);
  });

  test("has no label for a service account whose name does not fit into one, and lets no label of the pod replace its own", () => {
    const { labels } = podEndpointOf({
      metadata: {
        namespace: "ns",
        labels: { [`${identity.labelPrefix}namespace`]: "other", [`${identity.labelPrefix}serviceaccount`]: "admin" },
      },
      spec: { serviceAccountName: "a".repeat(63) },
    }).metadata;

    expect(labels).toEqual({
      [`${identity.labelPrefix}namespace`]: "ns",
      [`${identity.labelPrefix}orchestrator`]: "k8s",
    });
  });
});

describe("endpointOf() with labels of the network config", () => {
  const labels = { role: "web", [`${identity.labelPrefix}namespace`]: "other" };
  const place = { [`${identity.labelPrefix}namespace`]: "ns", [`${identity.labelPrefix}orchestrator`]: "k8s" };

  test("has them beside those of its namespace and orchestrator, which cannot be changed", () => {
    expect(endpointOf({ ...sources, labels }, stamp).metadata.labels).toEqual({ role: "web", ...place });
  });

  test("has the labels of the pod instead, if it is known", () => {
    const endpoint = podEndpointOf({ metadata: { namespace: "ns", name: "web", labels: { app: "a" } }, spec: {} });
    const found = endpointOf({ ...sources, labels, podFacts: { ...NO_POD_FACTS, endpoint } }, stamp);
    expect(found.metadata.labels).toEqual({ app: "a", ...place });
  });

  const stored = (containerId: string) => {
    const first = endpointOf({ ...sources, labels, workload: { ...workload, containerId } }, stamp);
    const relabelled = { ...first, metadata: { ...first.metadata, labels: { role: "database", ...place } } };
    return { key: KEY, value: JSON.stringify(relabelled), revision: "7" };
  };
  const labelsAfter = ([change]: readonly Change[]) =>
    readStoredEndpoint({ key: KEY, value: change && "value" in change ? (change.value ?? "") : "", revision: "8" })
      .labels;
  const again = endpointOf({ ...sources, labels: { role: "web", more: "" } }, later);

  test("keeps labels that were changed, when the ADD of the container is repeated", () => {
    const held = stored(call.containerId);
    expect(endpointChanges({ wanted: again, labels: "of the config", whenEqual: "expect" }, KEY, held)).toEqual([
      { kind: "expect", key: KEY, revision: held.revision },
    ]);
    expect(
      labelsAfter(endpointChanges({ wanted: again, labels: "of the pod", whenEqual: "expect" }, KEY, held)),
    ).toEqual({
      role: "web",
      more: "",
      ...place,
    });
  });

  test("has those of the config again in the next container", () => {
    const held = stored("another");
    expect(
      labelsAfter(endpointChanges({ wanted: again, labels: "of the config", whenEqual: "expect" }, KEY, held)),
    ).toEqual({
      role: "web",
      more: "",
      ...place,
    });
  });
});

describe("endpointChanges()", () => {
  const changesOf = (wanted: WorkloadEndpoint, held: Entry | undefined, whenEqual: "expect" | "write" = "expect") =>
    endpointChanges({ wanted, labels: "of the config", whenEqual }, KEY, held);
  const before = endpointOf(sources, stamp);
  const held = { key: KEY, value: JSON.stringify(before), revision: "7" };

  test("creates a missing record", () => {
    expect(changesOf(before, undefined)).toEqual([{ kind: "create", key: KEY, value: held.value }]);
  });

  test("an equal record is expected to stay, or written again so that nobody deletes the former revision", () => {
    const again = endpointOf(sources, later);
    expect(changesOf(again, held, "expect")).toEqual([{ kind: "expect", key: KEY, revision: "7" }]);
    expect(changesOf(again, held, "write")).toEqual([{ kind: "update", key: KEY, value: held.value, revision: "7" }]);
  });

  test("updates the record of an earlier sandbox, and keeps its UID and creation time", () => {
    const next = workloadOf({ ...call, containerId: "fedcba9876543210" }, pod, "node1");
    const [change] = changesOf(endpointOf({ ...sources, workload: next }, later), held);

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
