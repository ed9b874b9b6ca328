import { expect, test } from "bun:test";
import { withPodCidrs } from "./record-change.ts";

test("withPodCidrs() writes the text of the Node: the admission policy compares no networks", () => {
  const podCidrs = ["10.244.1.0/24", "fd00:0:0::/80"];
  expect(withPodCidrs({ podCIDRs: ["10.244.9.0/24"] }, podCidrs)).toEqual({ podCIDRs: podCidrs });
  expect(withPodCidrs({ podCIDRs: podCidrs }, [])).toEqual({});
  expect(withPodCidrs({ podCIDRs: podCidrs }, undefined)).toEqual({ podCIDRs: podCidrs });
});
