import { describe, expect, test } from "bun:test";
import { PUBLIC_KINDS } from "./kinds.ts";
import { isObject } from "./shape.ts";
import { FIELDS_WITHOUT_EFFECT, withoutEffect } from "./without-effect.ts";

describe("withoutEffect()", () => {
  test.each([
    ["IPPool", { ipipMode: "Always", vxlanMode: "Never" }, ["spec.ipipMode"]],
    ["IPPool", { vxlanMode: "CrossSubnet" }, ["spec.vxlanMode"]],
    ["IPPool", { disableBGPExport: true }, ["spec.disableBGPExport"]],
    ["IPPool", { ipipMode: "Never", vxlanMode: null, disableBGPExport: false, natOutgoing: true }, []],
    ["Profile", { ingress: [{ action: "Deny" }], egress: [] }, ["spec.ingress"]],
    ["WorkloadEndpoint", { ipNATs: [{ internalIP: "10.0.0.1", externalIP: "192.0.2.1" }] }, ["spec.ipNATs"]],
    ["Node", { bgp: { asNumber: 64512, ipv4Address: "192.0.2.1/24" } }, ["spec.bgp.asNumber"]],
    ["Node", {}, []],
    ["Node", undefined, []],
  ])("of a %s with %j", (kind, spec, fields) => {
    expect(withoutEffect(kind, spec).map((message) => message.split(" ")[0])).toEqual(fields);
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
