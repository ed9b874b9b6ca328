import { describe, expect, test } from "bun:test";
import { type AttemptLimits, type RefusedToken, TokenAttempts } from "./token-attempts.ts";

type Verified = { readonly kind: "node"; readonly node: string } | RefusedToken;

describe("TokenAttempts", () => {
  const refused = { kind: "refused", why: "it is not valid" } as const;
  function attemptsOf(verify: (token: string) => Promise<Verified>, ofAll?: AttemptLimits) {
    const [asked, clock]: [string[], { now: number }] = [[], { now: 0 }];
    const attempts = new TokenAttempts(
      (token) => {
        asked.push(token);
        return verify(token);
      },
      () => clock.now,
      ofAll,
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
    const answer = Promise.withResolvers<Verified>();
    const { asked, from } = attemptsOf(() => answer.promise);
    const attempts = Array.from({ length: 10 }, (_, index) => from("a", `${index}`));
    const other = from("b", "other");
    answer.resolve({ kind: "node", node: "n1" });
    await Promise.all([...attempts, other]);

    expect(asked).toEqual(["0", "1", "2", "3", "other"]);
    expect(await from("a", "later")).toEqual({ kind: "node", node: "n1" });
  });

  test("asks about so many tokens of all addresses at the same time, and lets all wait if too many were refused", async () => {
    const answer = Promise.withResolvers<Verified>();
    const { asked, clock, from } = attemptsOf(() => answer.promise, { mostAtOnce: 3, mostRefused: 5 });
    const attempts = Array.from({ length: 5 }, (_, index) => from(`address ${index}`, `${index}`));
    answer.resolve(refused);
    expect(await Promise.all(attempts)).toEqual([refused, refused, refused, undefined, undefined]);
    expect([await from("x", "5"), await from("y", "6")]).toEqual([refused, refused]);

    expect(await from("z", "7")).toBeUndefined();
    clock.now = 60_000;
    expect(await from("z", "7")).toEqual(refused);
    expect(asked).toEqual(["0", "1", "2", "5", "6", "7"]);
  });
});
