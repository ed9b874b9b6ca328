import { describe, expect, test } from "bun:test";
import { API_VERSION } from "../identity.ts";
import { PUBLIC_KINDS } from "./kinds.ts";
import { isObject } from "./shape.ts";
import { FIELDS_WITHOUT_EFFECT, withoutEffect } from "./without-effect.ts";

describe("withoutEffect()", () => {
  test.each([
    ["IPPool", { ipipMode: "Always", vxlanMode: "CrossSubnet", disableBGPExport: true, natOutgoing: true }, []],
    ["Profile", { ingress: [{ action: "Deny" }], egress: [] }, []],
    ["WorkloadEndpoint", { ipNATs: [{ internalIP: "10.0.0.1", externalIP: "192.0.2.1" }] }, []],
    ["Node", { bgp: { asNumber: 64512, routeReflectorClusterID: "192.0.2.1" } }, []],
    ["Node", { wireguard: { interfaceIPv4Address: "10.0.0.1" } }, ["spec.wireguard"]],
    ["Node", { wireguard: null }, []],
    ["Node", {}, []],
    ["Node", undefined, []],
  ])("of a %s with %j", (kind, spec, fields) => {
    expect(withoutEffect(kind, spec).map((message) => message.split(" ")[0])).toEqual(fields);
  });

  /** Of each field a value that requests something. */
  const REQUESTS: Readonly<Record<string, object>> = {
    "Node wireguard": { wireguard: { interfaceIPv4Address: "10.0.0.1" } },
  };

  test.each([...FIELDS_WITHOUT_EFFECT])("$kind with $field is accepted, not refused", ({ kind, field }) => {
    const spec = REQUESTS[`${kind} ${field}`];
    const codec = PUBLIC_KINDS.find((row) => row.kind === kind)?.codec;

    expect(codec?.decode({ apiVersion: API_VERSION, kind, metadata: { name: "a" }, spec })).toMatchObject({ ok: true });
    expect(withoutEffect(kind, spec)).toHaveLength(1);
  });

  test.each([...FIELDS_WITHOUT_EFFECT])("$kind has the field $field", ({ kind, field }) => {
    let schema: unknown = PUBLIC_KINDS.find((row) => row.kind === kind)?.codec.specSchema;
    for (const name of field.split(".")) {
      while (isObject(schema) && "wrapped" in schema) schema = schema["wrapped"];
      const entries: unknown = isObject(schema) ? schema["entries"] : undefined;
      schema = isObject(entries) ? entries[name] : undefined;
    }

    expect(schema).toBeDefined();
  });
});
