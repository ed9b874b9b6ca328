import { describe, expect, test } from "bun:test";
import { formatPrefix, parseInterfaceAddress } from "../../ip/prefix.ts";
import { masqueradedSources } from "./masqueraded-sources.ts";

const shown = (pod: string, isShared: boolean, masquerade: "none" | "needed" | "all") => {
  const address = parseInterfaceAddress(pod);
  if (address === undefined) throw new Error(pod);
  return masqueradedSources(address, { name: "link", index: 2, isShared, isUplink: false }, { masquerade }).map(
    ({ source, length }) => formatPrefix({ network: source, length }),
  );
};

describe("masqueradedSources()", () => {
  test.each([
    ["10.0.0.2/24", false, "needed", ["10.0.0.2/32", "127.0.0.0/8"]],
    ["10.0.0.2/24", true, "needed", ["10.0.0.0/24", "127.0.0.0/8"]],
    ["fd00::2/64", false, "needed", ["fd00::2/128"]],
    ["fd00::2/64", true, "needed", ["fd00::/64"]],
    ["10.0.0.2/24", true, "all", ["0.0.0.0/0"]],
    ["fd00::2/64", false, "all", ["::/0"]],
    ["10.0.0.2/24", true, "none", []],
  ] as const)("of pod %s, on a shared link: %p, %s: %p", (pod, isShared, masquerade, expected) => {
    expect(shown(pod, isShared, masquerade)).toEqual([...expected]);
  });
});
