import { describe, expect, test } from "bun:test";
import { endOfText, isNameOf, originTitle, originWords, readRuleComment, shortComment } from "./rule-comment.ts";

describe("readRuleComment()", () => {
  test.each([
    ["shop/db ingress 0", 'NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])', "shop/db"],
    ["profile egress 2", 'GlobalNetworkPolicy "profile", egress rule 3 (spec.egress[2])', "profile"],
    [
      "tier default ingress default",
      'the end of tier "default": no ingress rule of its policies matches',
      "end of tier default",
    ],
    [
      "kcnp.guard ingress 1",
      'ClusterNetworkPolicy "guard", ingress rule 2 (spec.ingress[1] of GlobalNetworkPolicy "kcnp.guard")',
      "kcnp.guard",
    ],
    ["profile egress", "an egress rule of a profile", "rule of a profile"],
    ["no profile allows it, ingress", "the end of the profiles: no ingress rule of them allows it", "end of profiles"],
    [
      "no policy decides it, egress",
      "the end of the policies of the host: none decides about this forwarded packet, egress",
      "end of policies",
    ],
    ["failsafe destination ports", "a failsafe port: open whatever policies say", "failsafe port"],
    ["failsafe source ports", "a reply from a failsafe port", "failsafe port"],
    ["neighbour discovery", "IPv6 neighbour discovery: allowed whatever policies say", "neighbour discovery"],
    [
      "exempt link calico0",
      'link "calico0": the host reaches others by it, so its packets are not those of a workload',
      "exempt link calico0",
    ],
    ["host to its own workload", "the host itself: it may always reach its own workloads", "host to its own workload"],
    ["state invalid", "connection tracking: it belongs to no connection (state invalid)", "state invalid"],
    ["VXLAN of a workload", "VXLAN of a workload", "VXLAN of a workload"],
  ])("of %p: %s, or %s", (comment, words, title) => {
    expect(originWords(readRuleComment(comment))).toBe(words);
    expect(originTitle(readRuleComment(comment))).toBe(title);
  });
});

describe("endOfText()", () => {
  test.each([
    ["shop/db ingress 0", 17, "shop/db ingress 0"],
    ["shop/db ingress 0", 9, "ingress 0"],
    ["éé 0", 6, "éé 0"],
    ["éé 0", 5, "é 0"],
    ["a€ 0", 4, " 0"],
  ])("of %p within %p bytes: %p", (text, bytes, end) => {
    expect(endOfText(text, bytes)).toBe(end);
  });
});

describe("shortComment()", () => {
  const end = "x".repeat(200);

  test("keeps what fits, to the byte", () => {
    for (const text of ["shop/db ingress 0", "é".repeat(60), "x".repeat(120)])
      expect(shortComment(text, 120)).toBe(text);
  });

  test("of two policies whose long names end alike is another one, and still names policy, direction and rule", () => {
    const [shop, data] = [`shop/${end}`, `data/${end}`];
    const comments = [shop, data].map((title) => shortComment(`${title} egress 12`, 120));

    expect(new Set(comments).size).toBe(2);
    expect(comments.map((comment) => Buffer.byteLength(comment))).toEqual([120, 120]);
    const origin = readRuleComment(comments[0] ?? "");
    expect(origin).toMatchObject({ kind: "policy", direction: "egress", rule: 12 });
    const policy = origin.kind === "policy" ? origin.policy : "";
    expect([isNameOf(policy, shop), isNameOf(policy, data), isNameOf(policy, end)]).toEqual([true, false, false]);
  });

  test("names a tier", () => {
    const origin = readRuleComment(`tier ${shortComment(end, 100)} ingress default`);
    expect(origin.kind === "tier" && isNameOf(origin.tier, end)).toBe(true);
    expect(isNameOf("default", "default")).toBe(true);
  });
});
