import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { identity } from "../identity.ts";
import { formatMac } from "../ip/mac.ts";
import { requestedMac } from "./requested-mac.ts";
import { refuseUnsupportedRequests, unusedArguments } from "./unsupported-requests.ts";

const MAC = "02:00:00:00:00:07";
const requested = (config: object, mac?: string) => {
  const bytes = requestedMac({ ...config }, { mac });
  return bytes === undefined ? undefined : formatMac(bytes);
};

describe("requestedMac()", () => {
  test.each([
    ["nobody asks", {}, undefined, undefined],
    ["CNI_ARGS", {}, "02-00-00-00-00-07", MAC],
    ["the config's args", { args: { cni: { mac: MAC } } }, undefined, MAC],
    ["the runtime", { runtimeConfig: { mac: MAC.toUpperCase() } }, undefined, MAC],
    ["the same MAC in several places", { args: { cni: { mac: MAC } }, runtimeConfig: { mac: MAC } }, MAC, MAC],
    ["keys in another case", { RuntimeConfig: { Mac: MAC }, Args: { CNI: { MAC } } }, undefined, MAC],
    ["an empty text as no request", { runtimeConfig: { mac: "" } }, undefined, undefined],
    ["a MAC of a vendor, too", {}, "00:16:3e:00:00:07", "00:16:3e:00:00:07"],
  ] as const)("reads %s", (_, config, mac, wanted) => {
    expect(requested(config, mac)).toBe(wanted);
  });

  test.each([
    ["text that is not a MAC", {}, "02:00", "environment-invalid", 'MAC of CNI_ARGS "02:00"'],
    ["another type", { runtimeConfig: { mac: 7 } }, undefined, "config-invalid", '"runtimeConfig.mac" 7'],
    ["a group address", { args: { cni: { mac: "01:00:5e:00:00:01" } } }, undefined, "config-invalid", "group address"],
    ["zero", {}, "00:00:00:00:00:00", "environment-invalid", "not the address of an interface"],
    ["the host's own", {}, "ee:ee:ee:ee:ee:ee", "environment-invalid", "the host's end"],
    ["different ones", { runtimeConfig: { mac: "02:00:00:00:00:08" } }, MAC, "config-invalid", "02:00:00:00:00:08"],
  ] as const)("refuses %s", (_, config, mac, kind, named) => {
    const failure = thrownBy(() => requested(config, mac));

    expect(failure.kind).toBe(kind);
    expect(failure.message).toContain(named);
  });
});

describe("refuseUnsupportedRequests()", () => {
  const refuse = (runtimeConfig: object, ipamType = identity.ipamType) =>
    refuseUnsupportedRequests({ runtimeConfig }, ipamType);

  test("lets pass what is used, what only describes the container, and what asks for nothing", () => {
    refuse({ ips: ["10.0.0.1"], mac: MAC, cgroupPath: "/a", "io.kubernetes.cri.pod-annotations": { a: "b" } });
    refuse({ portMappings: [], bandwidth: {}, deviceID: "", dns: null });
    refuse({ dns: { servers: [], searches: [], options: null }, MAC, IPs: ["10.0.0.1"] });
    refuse({ ipRanges: [[{ subnet: "10.0.0.0/24" }]] }, "host-local");
  });

  test.each([
    ["portMappings", [{ hostPort: 80 }], 'the entry of "portmap"'],
    ["bandwidth", { ingressRate: 1 }, 'the entry of "bandwidth"'],
    ["ipRanges", [[{ subnet: "10.0.0.0/24" }]], "pools"],
    ["deviceID", "0000:00:01.0", 'remove the capability "deviceID"'],
  ] as const)("refuses %s, and says what to change", (key, value, remedy) => {
    const failure = thrownBy(() => refuse({ [key]: value }));

    expect(failure.kind).toBe("field-unsupported");
    expect(failure.message).toContain(`"runtimeConfig.${key}" ${JSON.stringify(value)}`);
    expect(failure.details).toContain(remedy);
  });
});

describe("unusedArguments()", () => {
  test.each([
    [{}, []],
    [{ args: { cni: { ips: ["10.0.0.1"], mac: MAC, labels: [{ key: "a", value: "b" }], colour: "" } } }, []],
    [{ args: { "example.org": { colour: "red" } } }, []],
    [{ Args: { cni: { colour: "red" } } }, ['"args.cni.colour" "red" has no effect']],
  ])("reports what nobody uses in %p", (config, messages) => {
    expect(unusedArguments(config)).toEqual(messages.map((message) => expect.stringContaining(message)));
  });
});
