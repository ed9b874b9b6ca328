import { describe, expect, test } from "bun:test";
import { API_VERSION } from "../identity.ts";
import type { Metadata } from "./metadata.ts";
import { isUneditedNetworkProfile, networkProfileSpec, workloadProfileSpec } from "./network-profile.ts";
import { type Profile, profile } from "./profile.ts";

const SPEC = networkProfileSpec("pods");
const ORIGIN = { uid: "1d2", creationTimestamp: "2026-01-02T03:04:05Z" };
const of = (spec: Profile["spec"], more: Partial<Metadata> = {}) =>
  profile.make({ name: "pods", ...ORIGIN, ...more }, spec);
const ALLOW = { action: "Allow" } as const;

describe("workloadProfileSpec()", () => {
  test("the profile of a network as ADD wrote it closes no workload, and keeps its labels", () => {
    expect(workloadProfileSpec(of(SPEC))).toEqual({ ...SPEC, ingress: [ALLOW] });
  });

  test("is the record itself if somebody edited it", () => {
    const edited = of({ ...SPEC, ingress: [{ action: "Deny" }] });

    expect(workloadProfileSpec(edited)).toBe(edited.spec);
  });
});

describe("isUneditedNetworkProfile()", () => {
  test.each<[string, Profile]>([
    ["another rule", of({ ...SPEC, ingress: [...(SPEC.ingress ?? []), ALLOW] })],
    ["no ingress rule", of({ ...SPEC, ingress: [] })],
    ["another egress", of({ ...SPEC, egress: [{ action: "Deny" }] })],
    ["another label to apply", of({ ...SPEC, labelsToApply: { pods: "", role: "web" } })],
    ["a label", of(SPEC, { labels: { team: "a" } })],
    ["an annotation", of(SPEC, { annotations: { note: "closed on purpose" } })],
    ["the rules of another network", profile.make({ name: "others" }, SPEC)],
    ["the profile of a namespace", profile.make({ name: "kns.red" }, { ingress: [ALLOW], egress: [ALLOW] })],
  ])("%s: it counts as it is written", (_, changed) => {
    expect(isUneditedNetworkProfile(changed)).toBe(false);
  });

  test("a record of an earlier product counts as it is written: its rules name both peers, also without criteria", () => {
    const text = JSON.stringify({
      kind: "Profile",
      apiVersion: API_VERSION,
      metadata: { name: "pods", ...ORIGIN },
      spec: {
        ingress: [{ action: "Allow", source: { selector: "has(pods)" }, destination: {} }],
        egress: [{ action: "Allow", source: {}, destination: {} }],
        labelsToApply: { pods: "" },
      },
    });

    expect(isUneditedNetworkProfile(profile.read(text, "/key"))).toBe(false);
  });

  test("labels and annotations that were removed again do not count", () => {
    expect(isUneditedNetworkProfile(of(SPEC, { labels: {}, annotations: {}, resourceVersion: "7" }))).toBe(true);
  });
});
