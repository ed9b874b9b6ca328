import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { type FoundPod, requireSamePod, type WantedPod } from "./pod-identity.ts";

const UID = "11111111-2222-3333-4444-555555555555";
const OTHER_UID = "99999999-2222-3333-4444-555555555555";
const STATIC_UID = "0123456789abcdef0123456789abcdef";
const MIRROR = "kubernetes.io/config.mirror";

const wanted = (more: Partial<WantedPod> = {}): WantedPod => ({
  namespace: "shop",
  name: "web",
  uid: UID,
  nodes: ["node-1", "host-1"],
  nodeField: "kubernetes.node_name",
  ...more,
});
const found = (more: Partial<FoundPod> = {}): FoundPod => ({ uid: UID, node: "node-1", annotations: {}, ...more });

describe("requireSamePod()", () => {
  test.each<readonly [string, FoundPod, WantedPod]>([
    ["of the UID that the runtime passes", found(), wanted()],
    ["if the runtime passes no UID", found(), wanted({ uid: undefined })],
    ["on a node of another name of this host", found({ node: "host-1" }), wanted()],
    ["that mirrors the static pod", found({ annotations: { [MIRROR]: STATIC_UID } }), wanted({ uid: STATIC_UID })],
  ])("accepts a pod %s", (_, pod, call) => {
    expect(() => requireSamePod(pod, call)).not.toThrow();
  });

  test.each<readonly [string, FoundPod | undefined, WantedPod, string, string]>([
    ["that is gone", undefined, wanted(), "container-unknown", "no longer exists"],
    ["that is gone, without a UID", undefined, wanted({ uid: undefined }), "container-unknown", "no longer exists"],
    ["that was replaced", found({ uid: OTHER_UID }), wanted(), "container-unknown", OTHER_UID],
    [
      "that was replaced on another node",
      found({ node: "far" }),
      wanted({ uid: undefined }),
      "container-unknown",
      'on node "far"',
    ],
    [
      "that was replaced and has no node yet",
      found({ node: undefined }),
      wanted({ uid: undefined }),
      "container-unknown",
      "not assigned to a node",
    ],
    [
      "that is on another node",
      found({ node: "far" }),
      wanted(),
      "try-again-later",
      'this node is "node-1" or "host-1"',
    ],
    ["that has no mirror pod yet", undefined, wanted({ uid: STATIC_UID }), "try-again-later", "static pod"],
    [
      "whose mirror pod is outdated",
      found({ annotations: { [MIRROR]: "ffff" } }),
      wanted({ uid: STATIC_UID }),
      "try-again-later",
      "outdated",
    ],
  ])("refuses a pod %s", (_, pod, call, kind, state) => {
    const error = thrownBy(() => requireSamePod(pod, call));

    expect(error.kind).toBe(kind as typeof error.kind);
    expect(error.message).toContain('pod "shop/web"');
    expect(error.message).toContain(state);
  });

  test.each(["nodename", "kubernetes.node_name"] as const)("names the field %s and its value", (nodeField) => {
    const { details } = thrownBy(() => requireSamePod(found({ node: "far" }), wanted({ nodeField })));

    expect(details).toBe(`if this is that node, set "${nodeField}" in the network config to "far"`);
  });
});
