import { beforeEach, describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { NETWORK_ANNOTATION } from "../../model/endpoint-labels.ts";
import { EXIT_OK } from "../main/command.ts";
import { KIND_WORDS } from "../resources/options.ts";
import { NAMES_COMMAND } from "./shells.ts";

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  const resource = (kind: string, name: string, metadata: object = {}, spec: object = {}) =>
    JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name, ...metadata }, spec });
  const documents = [
    resource("IPPool", "blue", {}, { cidr: "10.0.0.0/24" }),
    resource("IPPool", "red", {}, { cidr: "10.0.1.0/24" }),
    resource("WorkloadEndpoint", "here"),
    resource("WorkloadEndpoint", "there", { namespace: "prod" }, { workload: "web" }),
  ];
  await runInside(["apply", "-f", "-"], { store, stdin: documents.join("\n---\n") });
});

async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const { code, stdout } = await runInside([NAMES_COMMAND, "--", ...words], { store });
  expect(code).toBe(EXIT_OK);
  return stdout.split("\n").filter((line) => line !== "");
}

describe("completionNames()", () => {
  test.each<[readonly string[], readonly string[]]>([
    [["get", ""], KIND_WORDS],
    [
      ["get", "pool", ""],
      ["blue", "red"],
    ],
    [
      ["get", "pools", "-o", "json", "b"],
      ["blue", "red"],
    ],
    [
      ["-o", "json", "get", "pools", ""],
      ["blue", "red"],
    ],
    [["get", "pool", "blue", ""], ["red"]],
    [
      ["delete", "--force", "pool", ""],
      ["blue", "red"],
    ],
    [
      ["edit", "pool", ""],
      ["blue", "red"],
    ],
    [["edit", "pool", "blue", ""], []],
    [["label", "pool", "blue", ""], []],
    [
      ["label", ""],
      [...KIND_WORDS, "container", "network"],
    ],
    [
      ["get", "ippool/b"],
      ["ippool/blue", "ippool/red"],
    ],
    [
      ["get", "ippool/blue", "ippool/"],
      ["ippool/blue", "ippool/red"],
    ],
    [["get", "wep", ""], ["here"]],
    [
      ["get", "wep", "-n", "prod", ""],
      ["web", "there"],
    ],
    [
      ["get", "wep", "-A", ""],
      ["here", "web", "there"],
    ],
    [["get", "pools,nodes", ""], []],
    [["explain", ""], []],
    [["ipam", "show", ""], []],
    [["nonsense", ""], []],
  ])("%j", async (words, expected) => {
    expect(await offered(...words)).toEqual(expected);
  });

  test("offers the names of containers and networks to be labelled", async () => {
    const endpoint = {
      ...{ apiVersion: API_VERSION, kind: "WorkloadEndpoint" },
      metadata: { name: "n1-cni-c1-eth0", annotations: { [NETWORK_ANNOTATION]: "net" } },
      spec: { orchestrator: "cni", node: "n1", workload: "web", containerID: "c1", endpoint: "eth0" },
    };
    await runInside(["apply", "-f", "-"], { store, stdin: JSON.stringify(endpoint) });

    expect(await offered("label", "container", "")).toEqual(["web"]);
    expect(await offered("label", "network", "")).toEqual(["net"]);
    expect(await offered("label", "container", "web", "")).toEqual([]);
  });

  test("is not shown in help", async () => {
    expect((await runInside(["--help"])).stdout).not.toContain(NAMES_COMMAND);
  });
});
