import { describe, expect, test } from "bun:test";
import { linkTarget } from "../linux/link-target.ts";
import { greetingOf } from "./greeting.ts";

const HERE: Readonly<Record<string, string>> = {
  "/proc/self/ns/net": "net:[4026531840]",
  "/proc/self/ns/mnt": "mnt:[4026531841]",
};
const from = (places: Readonly<Record<string, string>>) => (path: string) => places[path] ?? "";

describe("greetingOf()", () => {
  test("is one line of the release and both namespaces", () => {
    expect(greetingOf("1.2.3", from(HERE))).toBe("1.2.3 net:[4026531840] mnt:[4026531841]\n");
  });

  test("is another one from another release, network namespace or mount namespace", () => {
    const greetings = [
      greetingOf("1.2.3", from(HERE)),
      greetingOf("1.2.4", from(HERE)),
      greetingOf("1.2.3", from({ ...HERE, "/proc/self/ns/net": "net:[4026532000]" })),
      greetingOf("1.2.3", from({ ...HERE, "/proc/self/ns/mnt": "mnt:[4026532000]" })),
    ];

    expect(new Set(greetings).size).toBe(4);
  });

  test("tells where this very process is", () => {
    expect(greetingOf("1.2.3", linkTarget)).toMatch(/^1\.2\.3 net:\[\d+\] mnt:\[\d+\]\n$/);
  });
});
