import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import { decodeOptions } from "./options.ts";

describe("decodeOptions()", () => {
  test.each([
    [{}, "needed"],
    [{ snat: true }, "needed"],
    [{ snat: false }, "none"],
    [{ masqAll: true }, "all"],
    [{ snat: false, masqAll: true }, "none"],
    [
      { backend: "nftables", markMasqBit: 13, externalSetMarkChain: "", conditionsV4: [], conditionsV6: null },
      "needed",
    ],
    [{ SNAT: false }, "none"],
    [{ MasqAll: true }, "all"],
    [{ snat: true, SNAT: false }, "needed"],
    [{ markMasqBit: 0 }, "needed"],
    [{ markMasqBit: 31 }, "needed"],
    [{ capabilities: { portMappings: true }, whatever: 1 }, "needed"],
  ] as const)("reads %p as masquerading %p", (config, masquerade) => {
    expect(decodeOptions(config)).toEqual({ masquerade });
  });

  test.each([
    [{ snat: "true" }, "decode-failure", "snat"],
    [{ masqAll: 1 }, "decode-failure", "masqAll"],
    [{ backend: "iptables" }, "field-unsupported", "iptables"],
    [{ backend: "ebpf" }, "config-invalid", "ebpf"],
    [{ markMasqBit: 32 }, "config-invalid", "32"],
    [{ markMasqBit: "13" }, "config-invalid", "13"],
    [{ conditionsv4: ["-s", "192.0.2.0/24"] }, "field-unsupported", "192.0.2.0/24"],
    [{ Backend: "iptables" }, "field-unsupported", "iptables"],
    [{ externalSetMarkChain: "KUBE-MARK-MASQ" }, "field-unsupported", "KUBE-MARK-MASQ"],
  ] as const)("refuses %p as %s, and names the value", (config, kind, named) => {
    const error = thrownBy(() => decodeOptions(config));
    expect(error.kind).toBe(kind);
    expect(error.message).toContain(named);
  });
});
