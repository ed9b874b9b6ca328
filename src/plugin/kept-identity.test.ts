import { describe, expect, test } from "bun:test";
import { parseAddress } from "../ip/address.ts";
import { keepHandle } from "../model/kept-address.ts";
import type { AnnotationRequests } from "./annotations.ts";
import { keepRequestOf, keptUseOf, undoOfKept } from "./kept-identity.ts";
import { workloadOf } from "./workload.ts";

const call = { networkName: "pods", containerId: "c1", ifname: "eth0" };
const pod = workloadOf(call, { podNamespace: "shop", podName: "db-0" }, "n1");
const container = workloadOf(call, { podName: "web" }, "n1");
const unnamed = workloadOf(call, {}, "n1");
const asking = (value: boolean, on: "pod" | "namespace" = "pod"): AnnotationRequests => ({
  pools: {},
  keepAddresses: { value, place: "here", on },
});
const SILENT: AnnotationRequests = { pools: {} };
const handleOf = (namespace: string, identity: string) => keepHandle({ network: "pods", namespace, identity });

describe("keepRequestOf()", () => {
  test("a pod that asks for it, by its name, whatever owns it", () => {
    const owner = { kind: "StatefulSet", name: "db" };
    expect(keepRequestOf(pod, { requests: asking(true), owner })).toEqual({
      handle: handleOf("shop", "pod/db-0"),
      containerId: "c1",
      when: "always",
      owner: "StatefulSet/db",
      title: 'pod "shop/db-0"',
    });
    expect(keepRequestOf(pod, { requests: asking(true) })).not.toHaveProperty("owner");
  });

  test("without a word, as the pool says", () => {
    expect(keepRequestOf(pod, { requests: { pools: {} } })?.when).toBe("if its pool does");
    expect(keepRequestOf(pod, { requests: asking(false) })).toBeUndefined();
  });

  test.each(["Deployment", "ReplicaSet", "ReplicationController", "DaemonSet", "Job", "CronJob"])(
    "not a pod of a %s: its name never comes again",
    (kind) => {
      expect(keepRequestOf(pod, { requests: asking(true), owner: { kind, name: "web" } })).toBeUndefined();
    },
  );

  test.each([
    ["StatefulSet", "db"],
    ["Node", "n1"],
    ["VirtualMachineInstance", "desktop"],
  ])("a pod of a %s as its namespace or its pool says: it comes again", (kind, name) => {
    const owner = { kind, name };
    expect(keepRequestOf(pod, { requests: asking(true, "namespace"), owner })?.when).toBe("always");
    expect(keepRequestOf(pod, { requests: SILENT, owner })?.when).toBe("if its pool does");
  });

  test.each([
    ["a Workflow", { kind: "Workflow", name: "build" }],
    ["a TaskRun", { kind: "TaskRun", name: "t" }],
    ["a CloneSet", { kind: "CloneSet", name: "web" }],
    ["a pod", { kind: "Pod", name: "driver" }],
    ["a StatefulSet, without an ordinal", { kind: "StatefulSet", name: "other" }],
    ["a StatefulSet of another project", { kind: "StatefulSet.apps.example.org", name: "db" }],
    ["a virtual machine of another project", { kind: "VirtualMachineInstance.example.org", name: "desktop" }],
    ["nobody, with a name that the API made", undefined],
  ])("a pod of %s only if it asks for it itself, by its name", (_, owner) => {
    const facts = owner === undefined ? ({ hasGeneratedName: true } as const) : { owner };
    expect(keepRequestOf(pod, { requests: asking(true, "namespace"), ...facts })).toBeUndefined();
    expect(keepRequestOf(pod, { requests: SILENT, ...facts })).toBeUndefined();
    expect(keepRequestOf(pod, { requests: asking(true), ...facts })).toMatchObject({
      handle: handleOf("shop", "pod/db-0"),
      when: "always",
    });
  });

  test("a virtual machine by its own name, whatever its pod is called", () => {
    const owner = { kind: "VirtualMachineInstance", name: "desktop" };
    expect(keepRequestOf(pod, { requests: asking(true), owner })?.handle).toBe(handleOf("shop", "vm/desktop"));
  });

  test("for as long as it asks for: limited by the cluster, unless the controllers see its end", () => {
    const keepFor = { value: { text: "0s", seconds: 0 }, place: "there" };
    const requests = { ...asking(true), keepFor };
    const limitedFor = (kind?: string, name = "db") =>
      keepRequestOf(pod, { requests, ...(kind === undefined ? {} : { owner: { kind, name } }) })?.limited;

    expect(keepRequestOf(pod, { requests })?.seconds).toBe(0);
    for (const kind of ["StatefulSet", "VirtualMachineInstance"]) expect(limitedFor(kind)).toBeUndefined();
    for (const limited of [limitedFor(), limitedFor("Node"), limitedFor("Workflow"), limitedFor("StatefulSet", "d")])
      expect(limited).toMatchObject({ text: "0s", place: "there" });
    expect(keepRequestOf(pod, { requests: asking(true) })?.limited).toBeUndefined();
  });

  test("a container by its name on its node; one without a name not at all", () => {
    expect(keepRequestOf(container, { requests: { pools: {} } })).toMatchObject({
      handle: handleOf("", "container/n1/web"),
      title: 'container "web"',
    });
    expect(keepRequestOf(unnamed, { requests: { pools: {} } })).toBeUndefined();
  });
});

describe("keptUseOf()", () => {
  test("leads to the handle only if the container was attached", () => {
    const attached = keptUseOf(pod, { results: [], hadLink: true });

    expect(attached).toEqual({ containerId: "c1", handle: handleOf("shop", "pod/db-0") });
    expect(keptUseOf(pod, { results: ["10.0.0.1"], hadLink: false })).toEqual(attached);
    expect(keptUseOf(pod, { results: [], hadLink: false })).toEqual({ containerId: "c1" });
  });
});

describe("undoOfKept()", () => {
  test("frees what nobody had before", () => {
    const [one, two] = ["10.0.0.1", "fd00::1"].map((text) => {
      const address = parseAddress(text);
      if (address === undefined) throw new Error(text);
      return { address, block: { network: address, length: 32 }, given: false, held: false };
    });
    if (one === undefined || two === undefined) throw new Error("no address");
    const kept = undoOfKept(pod, {
      handle: "keep-1",
      addresses: [
        { ...one, kept: "from now on" },
        { ...two, kept: "again" },
      ],
    });

    expect(kept).toEqual({ containerId: "c1", handle: "keep-1", forGood: [one.address] });
    expect(undoOfKept(pod, { handle: "pods.c1", addresses: [one, two] })).toBeUndefined();
  });
});
