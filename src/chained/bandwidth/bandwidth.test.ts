import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import { annotatedRates } from "./annotations.ts";
import { decodeBandwidth } from "./bandwidth.ts";

const RATES = { ingressRate: 8000, ingressBurst: 80, egressRate: 16_000, egressBurst: 160 };
const DECODED = { ingress: { rate: 8000n, burst: 80n }, egress: { rate: 16_000n, burst: 160n } };
const ANNOTATIONS = "io.kubernetes.cri.pod-annotations";

describe("decodeBandwidth()", () => {
  test.each([
    ["the config's own fields", RATES, DECODED],
    ["the config's own fields in another case", { IngressRate: 8000, ingressburst: 80 }, { ingress: DECODED.ingress }],
    ["the runtime's capability", { runtimeConfig: { bandwidth: RATES } }, DECODED],
    ["the capability in another case", { runtimeConfig: { bandWidth: RATES } }, DECODED],
    [
      "the capability as containerd spells it",
      { runtimeConfig: { bandwidth: { IngressRate: 8000, IngressBurst: 80, EgressRate: 16_000, EgressBurst: 160 } } },
      DECODED,
    ],
    ["one direction alone", { egressRate: 16_000, egressBurst: 160 }, { egress: DECODED.egress }],
    ["a direction set to zero", { ...RATES, ingressRate: 0, ingressBurst: 0 }, { egress: DECODED.egress }],
    ["nothing", {}, {}],
    ["nulls", { ingressRate: null, runtimeConfig: null }, {}],
    ["nulls of the runtime", { runtimeConfig: { bandwidth: null } }, {}],
    [
      "the largest numbers",
      { ingressRate: 2 ** 63, ingressBurst: 0xffffffff * 8 - 1 },
      { ingress: { rate: 2n ** 63n, burst: 0xffffffffn * 8n - 1n } },
    ],
    ["empty lists of subnets", { ...RATES, shapedSubnets: [], unshapedSubnets: null }, DECODED],
  ])("reads %s", (_name, config, bandwidth) => {
    expect(decodeBandwidth(config)).toEqual(bandwidth);
  });

  test("uses only the config's rates if it has any, none of the runtime's", () => {
    const config = { egressRate: 16_000, egressBurst: 160, runtimeConfig: { bandwidth: { ...RATES, egressRate: 1 } } };

    expect(decodeBandwidth(config)).toEqual({ egress: DECODED.egress });
  });

  test("uses annotations only for a direction without a rate from the runtime, so that nothing is shaped twice", () => {
    const annotations = { "kubernetes.io/ingress-bandwidth": "5M", "orchestrator.io/egress-bandwidth": "1Mi" };
    const annotated = {
      ingress: { rate: 5_000_000n, burst: undefined },
      egress: { rate: 2n ** 20n, burst: undefined },
    };
    const of = (bandwidth: object) => decodeBandwidth({ runtimeConfig: { bandwidth, [ANNOTATIONS]: annotations } });

    expect(of({})).toEqual(annotated);
    expect(of(RATES)).toEqual(DECODED);
    expect(of({ ingressRate: 8000, ingressBurst: 80 })).toEqual({ ...annotated, ingress: DECODED.ingress });
  });

  test.each([
    ["dockershim's", 2 ** 31 - 1],
    ["containerd's", 2 ** 32 - 1],
    ["CRI-O's", (2 ** 32 - 1) * 8 - 1],
  ])("treats %s burst as not set, but keeps the same number from the config", (_name, ingressBurst) => {
    const rates = { ingressRate: 8000, ingressBurst };

    expect(decodeBandwidth({ runtimeConfig: { bandwidth: rates } }).ingress?.burst).toBeUndefined();
    expect(decodeBandwidth(rates).ingress?.burst).toBe(BigInt(ingressBurst));
  });

  test.each([
    ["a rate without burst", { ingressRate: 8000 }],
    ["a burst without rate", { egressBurst: 80 }],
    ["a rate without burst from the runtime", { runtimeConfig: { bandwidth: { egressRate: 8000 } } }],
    ["a burst of 4 GB", { ingressRate: 8000, ingressBurst: 0xffffffff * 8 }],
    ["a rate below a byte", { ingressRate: 7, ingressBurst: 80 }],
  ])("refuses %s", (_name, config) => {
    expect(thrownBy(() => decodeBandwidth(config)).kind).toBe("config-invalid");
  });

  test.each([
    ["text", { ingressRate: "8000", ingressBurst: 80 }],
    ["a negative number", { ingressRate: -8000, ingressBurst: 80 }],
    ["a fraction", { ingressRate: 8000.5, ingressBurst: 80 }],
    ["a number beyond 64 bits", { ingressRate: 2 ** 64, ingressBurst: 80 }],
    ["a capability that is not an object", { runtimeConfig: { bandwidth: 5 } }],
  ])("refuses to decode %s", (_name, config) => {
    expect(thrownBy(() => decodeBandwidth(config)).kind).toBe("decode-failure");
  });

  test.each(["shapedSubnets", "unshapedSubnets"])("refuses %s instead of ignoring it", (field) => {
    expect(thrownBy(() => decodeBandwidth({ ...RATES, [field]: ["10.0.0.0/8"] })).kind).toBe("field-unsupported");
  });
});

describe("annotatedRates()", () => {
  const of = (orchestrator: string, text: string) => ({ [`${orchestrator}.io/egress-bandwidth`]: text });

  test.each([
    [{}, undefined],
    [of("orchestrator", "10M"), 10_000_000n],
    [of("kubernetes", "10M"), 10_000_000n],
    [{ ...of("kubernetes", "1000k"), ...of("orchestrator", "1M") }, 1_000_000n],
  ])("reads %j", (annotations, egress) => {
    expect(annotatedRates(annotations)).toEqual({ ingress: undefined, egress });
  });

  test.each([
    ["both names with different values", { ...of("kubernetes", "2M"), ...of("orchestrator", "1M") }],
    ["a bad value", of("kubernetes", "fast")],
  ])("refuses %s, naming the annotation", (_name, annotations) => {
    expect(() => annotatedRates(annotations)).toThrow("kubernetes.io/egress-bandwidth");
    expect(thrownBy(() => annotatedRates(annotations)).kind).toBe("config-invalid");
  });
});
