import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { FLOWS_AUDIENCE } from "../../release/workloads/names.ts";
import { readReview, TokenAttempts, type VerifiedNode } from "./verify-node.ts";

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

describe("TokenAttempts", () => {
  const refused = { kind: "refused", why: "it is not valid" } as const;
  function attemptsOf(verify: (token: string) => Promise<VerifiedNode>) {
    const [asked, clock]: [string[], { now: number }] = [[], { now: 0 }];
    const attempts = new TokenAttempts(
      (token) => {
        asked.push(token);
        return verify(token);
      },
      () => clock.now,
    );
    return { asked, clock, from: (address: string, token: string) => attempts.verifyFrom(address, token) };
  }

  test("asks about a refused token only once a minute", async () => {
    const { asked, clock, from } = attemptsOf(async () => refused);
    for (const address of ["a", "b", "c"]) expect(await from(address, "wrong")).toEqual(refused);
    expect(asked).toEqual(["wrong"]);
    clock.now = 60_000;
    await from("a", "wrong");

    expect(asked).toEqual(["wrong", "wrong"]);
  });

  test("lets an address wait from which many were refused, and no other one", async () => {
    const { asked, clock, from } = attemptsOf(async (token) =>
      token === "right" ? { kind: "node", node: "n1" } : refused,
    );
    for (let attempt = 0; attempt < 100; attempt++) await from("a", `wrong ${attempt}`);
    expect(asked).toHaveLength(20);
    expect(await from("a", "right")).toBeUndefined();
    expect(await from("b", "right")).toEqual({ kind: "node", node: "n1" });
    clock.now = 60_000;
    expect(await from("a", "right")).toEqual({ kind: "node", node: "n1" });
  });

  test("asks about a few tokens of one address at the same time", async () => {
    const answer = Promise.withResolvers<VerifiedNode>();
    const { asked, from } = attemptsOf(() => answer.promise);
    const attempts = Array.from({ length: 10 }, (_, index) => from("a", `${index}`));
    const other = from("b", "other");
    answer.resolve({ kind: "node", node: "n1" });
    await Promise.all([...attempts, other]);

    expect(asked).toEqual(["0", "1", "2", "3", "other"]);
    expect(await from("a", "later")).toEqual({ kind: "node", node: "n1" });
  });
});
