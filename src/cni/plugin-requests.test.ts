import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { decodeValidAttachments } from "./attachments.ts";
import { decodeNetwork } from "./network-list.ts";
import { addRequest, checkRequests, delRequests, gcRequests, statusRequests } from "./plugin-requests.ts";
import { EMPTY_RESULT } from "./result.ts";

const RESULT = { ...EMPTY_RESULT, ips: [{ address: "10.0.0.2/32" }] };
const PORTS = { portMappings: [{ hostPort: 80, containerPort: 8080, protocol: "tcp" }] };

function listOf(cniVersion: string, more: object = {}) {
  const plugins = [
    { type: "main", extra: 1 },
    { type: "portmap", capabilities: { portMappings: true, mac: true } },
  ];
  return decodeNetwork({ cniVersion, name: "net", plugins, ...more });
}

describe("addRequest()", () => {
  test("sets name and version, and keeps the entry's own fields", () => {
    const list = listOf("1.0.0");
    const [main] = list.plugins;
    if (main === undefined) throw new Error("no plugin");

    expect(addRequest(list, main, { capabilities: PORTS })).toEqual({
      type: "main",
      config: { type: "main", extra: 1, name: "net", cniVersion: "1.0.0" },
    });
  });

  test("sends the capabilities that are both enabled and known, and the result so far", () => {
    const list = listOf("0.4.0");
    const portmap = list.plugins[1];
    if (portmap === undefined) throw new Error("no plugin");

    const { config } = addRequest(list, portmap, { prevResult: RESULT, capabilities: { ...PORTS, bandwidth: {} } });

    expect(config["runtimeConfig"]).toEqual(PORTS);
    expect(config["prevResult"]).toEqual({
      cniVersion: "0.4.0",
      ips: [{ version: "4", address: "10.0.0.2/32" }],
      dns: {},
    });
  });
});

describe("checkRequests()", () => {
  test("sends every plugin the final result, in order", () => {
    const requests = checkRequests(listOf("1.0.0"), RESULT, {});

    expect(requests.map(({ type }) => type)).toEqual(["main", "portmap"]);
    expect(requests.every(({ config }) => config["prevResult"] !== undefined)).toBe(true);
  });

  test("sends nothing if the list disables it", () => {
    expect(checkRequests(listOf("1.0.0", { disableCheck: true }), RESULT, {})).toEqual([]);
  });

  test("is refused below 0.4.0", () => {
    expect(thrownBy(() => checkRequests(listOf("0.3.1"), RESULT, {})).kind).toBe("version-incompatible");
  });
});

describe("delRequests()", () => {
  test.each([
    ["0.3.1", false],
    ["0.4.0", true],
    ["1.1.0", true],
  ])("calls the last plugin first at %s; the result is sent: %p", (version, sent) => {
    const requests = delRequests(listOf(version), RESULT, PORTS);

    expect(requests.map(({ type }) => type)).toEqual(["portmap", "main"]);
    expect(requests.map(({ config }) => "prevResult" in config)).toEqual([sent, sent]);
    expect(requests[0]?.config["runtimeConfig"]).toEqual(PORTS);
  });

  test("sends no result if none is known", () => {
    expect(delRequests(listOf("1.1.0"), undefined, {}).some(({ config }) => "prevResult" in config)).toBe(false);
  });
});

describe("gcRequests()", () => {
  test("sends the valid attachments under both keys", () => {
    const valid = [{ containerId: "c1", ifname: "eth0" }];
    const requests = gcRequests(listOf("1.1.0"), valid);

    expect(requests).toHaveLength(2);
    for (const { config } of requests) expect(decodeValidAttachments(config)).toEqual(valid);
  });

  test.each([
    ["1.0.0", {}],
    ["1.1.0", { disableGC: true }],
  ])("sends nothing at %s with %p", (version, more) => {
    expect(gcRequests(listOf(version, more), [])).toEqual([]);
  });
});

describe("statusRequests()", () => {
  test.each([
    ["1.0.0", 0],
    ["1.1.0", 2],
  ])("at %s calls %p plugins", (version, count) => {
    expect(statusRequests(listOf(version))).toHaveLength(count);
  });
});

describe("decodeValidAttachments()", () => {
  const entry = { containerID: "c1", ifname: "eth0" };

  test.each([
    ["the key of the specification", { "cni.dev/valid-attachments": [entry] }, 1],
    ["the misspelt key", { "cni.dev/attachments": [entry] }, 1],
    ["both, the first wins", { "cni.dev/valid-attachments": [], "cni.dev/attachments": [entry] }, 0],
    ["null together with the misspelt key", { "cni.dev/valid-attachments": null, "cni.dev/attachments": [entry] }, 1],
    ["an empty list", { "cni.dev/valid-attachments": [] }, 0],
  ])("reads %s", (_, config, count) => {
    expect(decodeValidAttachments(config)).toHaveLength(count);
  });

  test.each([{}, { "cni.dev/valid-attachments": null }])("distinguishes no list (%p) from an empty one", (config) => {
    expect(decodeValidAttachments(config)).toBeUndefined();
  });

  test.each([[{}], ["x"], [[1]], [[{}]], [[{ containerID: "c1" }]], [[{ containerID: 1, ifname: "eth0" }]], [[null]]])(
    "refuses %p",
    (list) => {
      const failure = thrownBy(() => decodeValidAttachments({ "cni.dev/valid-attachments": list }));

      expect(failure.kind).toBe("decode-failure");
    },
  );
});
