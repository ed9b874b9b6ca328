import { describe, expect, test } from "bun:test";
import { putText } from "../../bytes.ts";
import { putLinkTarget } from "../../linux/link-target.ts";
import { greetingOf, isGreeting } from "./greeting.ts";

const HERE: Readonly<Record<string, string>> = {
  "/proc/self/ns/net": "net:[4026531840]",
  "/proc/self/ns/mnt": "mnt:[4026531841]",
};
const from = (places: Readonly<Record<string, string>>) => (bytes: Uint8Array, at: number, path: string) =>
  (putText(bytes, at, places[path] ?? "") ?? at) - at;
const textOf = (greeting: Uint8Array) => Buffer.from(greeting).toString();

describe("greetingOf()", () => {
  test("is one line with the release and both namespaces", () => {
    expect(textOf(greetingOf("1.2.3", from(HERE)))).toBe("1.2.3 net:[4026531840] mnt:[4026531841]\n");
  });

  test("differs for another release, network namespace or mount namespace", () => {
    const greetings = [
      greetingOf("1.2.3", from(HERE)),
      greetingOf("1.2.4", from(HERE)),
      greetingOf("1.2.3", from({ ...HERE, "/proc/self/ns/net": "net:[4026532000]" })),
      greetingOf("1.2.3", from({ ...HERE, "/proc/self/ns/mnt": "mnt:[4026532000]" })),
    ];

    expect(new Set(greetings.map(textOf)).size).toBe(4);
    expect(greetings.map((greeting) => isGreeting(greeting, greeting.length, greetingOf("1.2.3", from(HERE))))).toEqual(
      [true, false, false, false],
    );
  });

  test("contains the namespaces of this process", () => {
    expect(textOf(greetingOf("1.2.3", putLinkTarget))).toMatch(/^1\.2\.3 net:\[\d+\] mnt:\[\d+\]\n$/);
  });
});

describe("isGreeting()", () => {
  test.each([
    ["a beginning of the other", "v1 here", "v1 here\n"],
    ["a longer one", "v1 here\nand more", "v1 here\n"],
    ["nothing", "", "v1 here\n"],
  ])("does not take %s for the same", (_, one, other) => {
    expect(isGreeting(Buffer.from(one), one.length, Buffer.from(other))).toBe(false);
  });

  test("ignores bytes beyond those received", () => {
    const received = Buffer.from("v1 here\nleft from before");

    expect(isGreeting(received, 8, Buffer.from("v1 here\n"))).toBe(true);
    expect(isGreeting(received, 7, Buffer.from("v1 here\n"))).toBe(false);
  });
});
