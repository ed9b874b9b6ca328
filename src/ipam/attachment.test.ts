import { describe, expect, test } from "bun:test";
import { decode } from "../../test/support/network-config.ts";
import { identity } from "../identity.ts";
import { assignedRequest, assignRequest, attachmentOf, heldRequest, releaseRequest } from "./attachment.ts";

const call = { networkName: "net", containerId: "abc", ifname: "eth0" };
const { ipam } = decode({ ipam: { type: identity.ipamType } });

describe("attachmentOf()", () => {
  test("gives every plugin the same handle, and an interface only to one that names it", () => {
    const whole = attachmentOf(call, { node: "n" });
    const single = attachmentOf(call, { node: "n", ifname: "eth0" });

    expect(whole.handle).toBe("net.abc");
    expect(single.handle).toBe("net.abc");
    expect(whole.owner).toEqual({ handle: "net.abc", network: "net" });
    expect(single.owner).toEqual({ handle: "net.abc", network: "net", interface: "eth0" });
  });
});

describe("assignRequest()", () => {
  const attachment = attachmentOf(call, { node: "n" });

  test.each([
    ["records a pod with its namespace", { podNamespace: "ns", podName: "web" }, { pod: "web", namespace: "ns" }],
    ["records a name without a namespace as that of the container", { podName: "web" }, { container: "web" }],
    ["records no name if there is none", {}, {}],
  ] as const)("%s", (_, args, attributes) => {
    expect(assignRequest(attachment, { ipam, args, requested: [], onLink: [] })).toMatchObject({
      ...attachment.owner,
      node: "n",
      attributes,
    });
  });
});

describe("heldRequest()", () => {
  test("adds the handle of older releases, which undoing an ADD leaves alone", () => {
    const attachment = attachmentOf(call, { node: "n" });

    expect(heldRequest(attachment, ["10.0.0.1"])).toMatchObject({
      former: { handle: "abc", node: "n" },
      likely: ["10.0.0.1"],
    });
    expect(assignedRequest(attachment)).toEqual({ handle: "net.abc", network: "net", node: "n" });
    expect(heldRequest(attachmentOf({ ...call, containerId: "a.b" }, { node: "n" }), [])).not.toHaveProperty("former");
  });
});

describe("releaseRequest()", () => {
  test("looks for what the link had, and releases on any node only what the runtime's result names", () => {
    const attachment = attachmentOf(call, { node: "n" });

    expect(releaseRequest(attachment, { results: [], likely: ["10.0.0.1"], hadLink: true })).toMatchObject({
      ...{ likely: ["10.0.0.1"], onAnyNode: [], ifNoneOnNode: "release those of other nodes" },
    });
    const results = ["10.0.0.2"];
    expect(releaseRequest(attachment, { results, likely: results, hadLink: true })).toMatchObject({
      ...{ likely: results, onAnyNode: results, ifNoneOnNode: "release nothing" },
    });
  });
});
