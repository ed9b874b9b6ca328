import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { identity } from "../identity.ts";
import { formatMac } from "../ip/mac.ts";
import { formatMark, includesMarkOf, isMarkOf } from "../ipam/link-mark.ts";
import { hostInterfaceName } from "../model/host-interface-name.ts";
import { requireUsableNames, workloadOf } from "./workload.ts";

const CONTAINER = "0123456789abcdef0123456789abcdef";
const call = { networkName: "net", containerId: CONTAINER, ifname: "eth0" };

describe("requireUsableNames()", () => {
  const check = (podNamespace: string, podName: string) => () =>
    requireUsableNames(workloadOf(call, { podNamespace, podName }, "n"));

  test("accepts names that podman gives to containers", () => {
    expect(check("My_web.1", "My_web.1")).not.toThrow();
    expect(() => requireUsableNames(workloadOf(call, {}, "n"))).not.toThrow();
  });

  test.each([
    ["a/b", "web"],
    ["ns", "a/b"],
    ["n".repeat(254), "web"],
    ["ns", "p".repeat(254)],
  ])("refuses names that would make another key of the endpoint, or too long a one: %s, %s", (namespace, name) => {
    expect(thrownBy(check(namespace, name)).kind).toBe("environment-invalid");
  });
});

describe("workloadOf()", () => {
  test("names a pod's attachment by the pod", () => {
    const { mac, ...workload } = workloadOf(call, { podNamespace: "ns", podName: "web-0" }, "node-1");

    expect(workload).toEqual({
      network: "net",
      containerId: CONTAINER,
      ifname: "eth0",
      node: "node-1",
      orchestrator: "k8s",
      namespace: "ns",
      pod: "web-0",
      handle: `net.${CONTAINER}`,
      owner: { handle: `net.${CONTAINER}`, network: "net", interface: "eth0" },
      endpointName: "node--1-k8s-web--0-eth0",
      endpointKey: `${identity.etcdRoot}/resources/v3/${identity.apiGroup}/workloadendpoints/ns/node--1-k8s-web--0-eth0`,
      hostInterface: `${identity.interfacePrefix}91fb42d0bf1`,
      mark: `net/${CONTAINER}/eth0`,
    });
    expect(formatMac(mac)).toMatch(/^.[26ae]:/);
  });

  test("names any other attachment by its container", () => {
    const workload = workloadOf(call, {}, "node-1");

    expect(workload.orchestrator).toBe("cni");
    expect(workload.namespace).toBe("default");
    expect(workload.endpointName).toBe(`node--1-cni-${CONTAINER}-eth0`);
    expect(workload.hostInterface).toBe(`${identity.interfacePrefix}0123456789a`);
  });

  test("takes a pod name without a namespace for the name of the container", () => {
    const workload = workloadOf(call, { podName: "web" }, "n");

    expect(workload).toMatchObject({ orchestrator: "cni", containerName: "web" });
    expect(workload.endpointName).toBe(workloadOf(call, {}, "n").endpointName);
  });

  test("derives the same MAC each time, and another one for every other attachment", () => {
    const macOf = (more: object) => formatMac(workloadOf({ ...call, ...more }, {}, "n").mac);

    expect(macOf({})).toBe(macOf({}));
    expect(new Set([macOf({}), macOf({ ifname: "eth1" }), macOf({ networkName: "b" })]).size).toBe(3);
  });

  test("refuses an ID that is not valid in an endpoint's name", () => {
    expect(thrownBy(() => workloadOf({ ...call, containerId: "a-" }, {}, "n")).kind).toBe("environment-invalid");
  });
});

describe("hostInterfaceName()", () => {
  const name = (containerId: string, ifname = "eth0", pod?: { namespace: string; name: string }) =>
    hostInterfaceName({ containerId, ifname, pod }, "vend");

  test.each([
    ["a random ID by its beginning", name("abcdef0123456789"), "vendabcdef01234"],
    ["a short ID as it is", name("c1"), "vendc1"],
    [
      "a pod by the hash of its name",
      name("abcdef0123456789", "eth0", { namespace: "ns", name: "web-0" }),
      "vend91fb42d0bf1",
    ],
  ])("names %s", (_, given, expected) => {
    expect(given).toBe(expected);
  });

  test("distinguishes long IDs with the same beginning, and the interfaces of one container or pod", () => {
    const pod = { namespace: "ns", name: "web" };
    const names = [
      name("container-01"),
      name("container-02"),
      name("abcdef0123456789"),
      name("abcdef0123456789", "eth1"),
      name("abcdef0123456789", "eth0", pod),
      name("abcdef0123456789", "eth1", pod),
    ];

    expect(new Set(names).size).toBe(names.length);
  });

  test("never exceeds the kernel's limit", () => {
    const text = fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,80}$/);
    fc.assert(
      fc.property(text, text, (containerId, ifname) => {
        expect(name(containerId, ifname).length).toBeLessThanOrEqual(15);
      }),
    );
  });
});

describe("formatMark()", () => {
  test("fits in an alias, and is recognized as its network's", () => {
    const text = fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,300}$/);
    fc.assert(
      fc.property(text, text, (network, containerId) => {
        const mark = formatMark({ network, containerId, ifname: "eth0" });
        expect(mark.length).toBeLessThanOrEqual(255);
        expect(isMarkOf(network, mark)).toBe(true);
      }),
    );
  });

  test("is not recognized as another network's, even if the names begin alike", () => {
    const mark = formatMark({ network: "net.a", containerId: "c", ifname: "eth0" });

    expect(["net", "net.", "net.a.c", "et.a"].map((network) => isMarkOf(network, mark))).toEqual(
      new Array(4).fill(false),
    );
    expect(isMarkOf("net", "net/made by hand")).toBe(false);
  });
});

describe("includesMarkOf()", () => {
  const long = "f".repeat(180);
  const marks = new Set([long, "c"].map((containerId) => formatMark({ network: "net", containerId, ifname: "eth0" })));

  test.each([
    ["a long container ID, which is hashed in the mark", { network: "net", containerId: long, ifname: "eth0" }, true],
    [
      "any interface of the container, if none is given",
      { network: "net", containerId: long, ifname: undefined },
      true,
    ],
    ["not another interface", { network: "net", containerId: "c", ifname: "eth1" }, false],
    ["not another container", { network: "net", containerId: "cc", ifname: undefined }, false],
    ["not another network", { network: "net.b", containerId: "c", ifname: "eth0" }, false],
  ] as const)("knows %s", (_, attachment, included) => {
    expect(includesMarkOf(marks, attachment)).toBe(included);
  });
});
