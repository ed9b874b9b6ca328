import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { FLOWS_AUDIENCE } from "../../release/workloads/names.ts";
import { readReview } from "./verify-node.ts";

const REVIEW = {
  authenticated: true,
  audiences: [FLOWS_AUDIENCE],
  user: {
    username: `system:serviceaccount:kube-system:${identity.nodeAgent}`,
    extra: { "authentication.kubernetes.io/node-name": ["n1"] },
  },
};

describe("readReview()", () => {
  test("returns the node that the token is bound to", () => {
    expect(readReview(REVIEW, ["kube-system"])).toEqual({ kind: "node", node: "n1" });
  });

  test.each([
    ["not authenticated", { ...REVIEW, authenticated: false }],
    ["for another audience", { ...REVIEW, audiences: ["https://kubernetes.default.svc"] }],
    ["by a server that knows no audiences", { ...REVIEW, audiences: undefined }],
    [
      "of another namespace",
      {
        ...REVIEW,
        user: { ...REVIEW.user, username: `system:serviceaccount:shop:${identity.nodeAgent}` },
      },
    ],
    ["of a user", { ...REVIEW, user: { ...REVIEW.user, username: "admin" } }],
    ["without a node", { ...REVIEW, user: { ...REVIEW.user, extra: {} } }],
    ["empty", undefined],
  ])("refuses one %s", (_title, status) => {
    expect(readReview(status, ["kube-system"]).kind).toBe("refused");
  });
});
