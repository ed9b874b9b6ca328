import { describe, expect, test } from "bun:test";
import { commentEntry } from "../../linux/nftables/userdata.ts";
import { ownerOf, ownerText } from "./port-owner.ts";

const ID = "d05921e6aaea".padEnd(64, "0");

describe("ownerOf()", () => {
  test.each([
    ["the name that podman gives", ID, "IgnoreUnknown=1;K8S_POD_NAME=web", "pods/web/eth0"],
    ["a pod with the name of its namespace", ID, "K8S_POD_NAMESPACE=web;K8S_POD_NAME=web", "pods/web/web/eth0"],
    ["the ID if CNI_ARGS are wrong", "two", "K8S_POD_NAME", "pods/two/eth0"],
    ["the pod", ID, "K8S_POD_NAMESPACE=red;K8S_POD_NAME=web;K8S_POD_UID=1", "pods/red/web/eth0"],
    ["the beginning of a long ID", ID, "", "pods/d05921e6aaea/eth0"],
    ["an ID that somebody chose", "two", "IP=10.0.0.1", "pods/two/eth0"],
    ["the ID if the name is empty", "two", "K8S_POD_NAME=;K8S_POD_NAMESPACE=red", "pods/two/eth0"],
  ])("is called by %s", (_, containerId, args, name) => {
    expect(ownerOf("pods", { containerId, ifname: "eth0", args }).name).toBe(name);
  });

  test.each(["n".repeat(253), "ä".repeat(100)])(
    "keeps its interface if the name is too long for a comment: %s",
    (pod) => {
      const { name } = ownerOf("pods", {
        containerId: ID,
        ifname: "eth0",
        args: `K8S_POD_NAMESPACE=red;K8S_POD_NAME=${pod}`,
      });

      expect(name).toMatch(/^pods\/red\/[nä]{50,}…\/eth0$/);
      // A zero follows it.
      expect(new TextDecoder().decode(commentEntry(name).value.subarray(0, -1))).toBe(name);
    },
  );

  test("is the same with and without a name: a DEL may come without CNI_ARGS", () => {
    const attachment = { containerId: ID, ifname: "eth0" };

    expect(ownerOf("pods", { ...attachment, args: "K8S_POD_NAME=web" }).id).toEqual(ownerOf("pods", attachment).id);
  });
});

describe("ownerText()", () => {
  test.each([
    ["pods/web/eth0", 'container "web" of network "pods"'],
    ["pods/red/web/eth0", 'pod "red/web" of network "pods"'],
    ["0a1b2c", '"0a1b2c"'],
  ])("of %s", (name, expected) => {
    expect(ownerText(name)).toBe(expected);
  });
});
