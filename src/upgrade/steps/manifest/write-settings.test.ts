import { describe, expect, test } from "bun:test";
import { nextSpec } from "./write-settings.ts";

describe("nextSpec()", () => {
  test("variables come before the resource", () => {
    const settings = { defaultEndpointToHostAction: "Return" } as const;
    const spec = { defaultEndpointToHostAction: "Drop", healthPort: 9199 } as const;

    expect(nextSpec(spec, { settings })).toEqual({ defaultEndpointToHostAction: "Return", healthPort: 9199 });
  });

  test("a variable with the usual value is written only over another value of the resource", () => {
    const wanted = {
      settings: {},
      usualSettings: { defaultEndpointToHostAction: "Accept", healthEnabled: true },
    } as const;

    expect(nextSpec({}, wanted)).toEqual({});
    expect(nextSpec({ defaultEndpointToHostAction: "Drop" }, wanted)).toEqual({
      defaultEndpointToHostAction: "Accept",
    });
  });

  test("settings without a variable stay, those of flows too", () => {
    const spec = { flows: "Enabled", flowHistoryMegabytes: 50, flowLogFile: "/var/log/flows.json" } as const;

    expect(nextSpec(spec, { settings: { healthPort: 9199 } })).toEqual({ ...spec, healthPort: 9199 });
  });

  test("a default of earlier releases is written only if the resource has no value", () => {
    const wanted = { settings: {}, formerDefaults: { defaultEndpointToHostAction: "Drop" } } as const;

    expect(nextSpec({}, wanted)).toEqual({ defaultEndpointToHostAction: "Drop" });
    expect(nextSpec({ defaultEndpointToHostAction: "Accept" }, wanted)).toEqual({
      defaultEndpointToHostAction: "Accept",
    });
  });
});
