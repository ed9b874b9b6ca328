/** Whatever the plan is, BIRD itself accepts the configuration: one session that it refused would keep all others from changing. */
import { describe, expect } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { addressBits, type Family } from "../../src/ip/address.ts";
import { prefixAround } from "../../src/ip/prefix.ts";
import type { BgpPlan, BgpRule, BgpSession } from "../../src/routing/bgp/plan.ts";
import { renderBird } from "../../src/routing/bird/render.ts";
import { program, testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const RUNS = 150;

const family = fc.constantFrom<Family>(4, 6);
/** Also those that no host has. */
const STRANGE = { 4: [0n, 0x7f000001n, 0xe0000001n, 0xffffffffn], 6: [0n, 1n, (0xfe80n << 112n) + 1n, 0xffn << 120n] };
const addressIn = (of: Family) => {
  const first = of === 4 ? 0x0a000001n : 0xfd00n << 112n;
  const usual = fc.bigInt({ min: first, max: first + 0xffffn });
  return fc
    .oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: fc.constantFrom(...STRANGE[of]) })
    .map((value) => ({ family: of, value }));
};
const prefixIn = (of: Family) =>
  fc
    .tuple(addressIn(of), fc.integer({ min: 0, max: addressBits(of) }))
    .map(([address, length]) => prefixAround(address, length));
const prefix = family.chain(prefixIn);
const some = <Value>(value: fc.Arbitrary<Value>, maxLength = 4) => fc.array(value, { maxLength });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const asNumber = fc.integer({ min: 0, max: 4294967295 });
const port = fc.integer({ min: 1, max: 65535 });
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("eth*", '"; }', "a\\", "#", "/*", "//", "é"),
);

const rule: fc.Arbitrary<BgpRule> = fc.record({
  action: fc.constantFrom<BgpRule["action"]>("accept", "reject"),
  network: optional(
    prefix.chain((matched) =>
      fc.record({
        prefix: fc.constant(matched),
        lengths: fc
          .tuple(
            fc.integer({ min: 0, max: addressBits(matched.network.family) }),
            fc.integer({ min: matched.length, max: addressBits(matched.network.family) }),
          )
          .map(([from, to]) => ({ from: Math.min(from, to), to })),
        isNegated: fc.boolean(),
      }),
    ),
  ),
  onlyLearned: fc.boolean(),
  interface: optional(text),
});

const session = (index: number): fc.Arbitrary<BgpSession> =>
  family.chain((of) =>
    fc.record({
      name: fc.constant(`Node_${index}`),
      kind: fc.constantFrom<BgpSession["kind"]>("node-to-node mesh", "node specific", "global"),
      from: text,
      address: addressIn(of),
      port,
      localAs: fc.oneof(fc.constant(64512), asNumber),
      peerAs: fc.oneof(fc.constant(64512), asNumber),
      source: optional(addressIn(of)),
      password: optional(text),
      passive: fc.boolean(),
      reflector: optional(fc.record({ clusterId: fc.ipV4() })),
      nextHop: fc.constantFrom<BgpSession["nextHop"]>("automatic", "self", "keep"),
      restartSeconds: optional(fc.integer({ min: 0, max: 4095 })),
      allowedOwnAs: fc.integer({ min: 0, max: 10 }),
      ttlSecurityHops: optional(fc.integer({ min: 1, max: 255 })),
      importRules: some(rule),
      exportRules: some(rule),
    }),
  );

const number16 = fc.integer({ min: 0, max: 65535 });
const number32 = fc.integer({ min: 0, max: 4294967295 });

const plan: fc.Arbitrary<BgpPlan> = fc.record({
  routerId: addressIn(4),
  asNumber,
  addresses: fc.record({ 4: addressIn(4), 6: addressIn(6) }, { requiredKeys: [] }),
  listenPort: port,
  listenOn: fc.constantFrom<BgpPlan["listenOn"]>("all", "node"),
  log: fc.constantFrom<BgpPlan["log"]>("Debug", "Info", "Warning", "Error", "Fatal"),
  announced: some(prefix),
  exported: some(prefix),
  services: some(prefix),
  accepted: some(prefix),
  withheld: some(prefix),
  tunnelled: some(prefix),
  advertisements: some(
    fc.record({
      prefix,
      communities: some(fc.oneof(fc.tuple(number16, number16), fc.tuple(number32, number32, number32))),
    }),
  ),
  ignoredInterfaces: some(text),
  sessions: fc.tuple(session(1), session(2), session(3)).chain((all) => fc.subarray(all)),
  problems: fc.constant([]),
});

describe("the configuration of BIRD", () => {
  testNeeding(program("bird"))("is accepted by BIRD, whatever the plan is", async () => {
    const directory = temporaryDirectory("bird-config");
    const settings = { logFile: join(directory.path, "bird.log"), ownInterfaces: ["vend*"], agentProtocol: 86 };
    const file = join(directory.path, "bird.conf");
    await fc.assert(
      fc.asyncProperty(plan, async (each) => {
        const rendered = renderBird(each, settings);
        await Bun.write(file, rendered.text);
        const child = Bun.spawn(["bird", "-p", "-c", file], { stderr: "pipe" });
        const printed = await new Response(child.stderr).text();
        expect({ code: await child.exited, printed }).toEqual({ code: 0, printed: "" });
        const sessions = rendered.text.split("\n").filter((line) => line.startsWith("protocol bgp "));
        expect(
          sessions.length + rendered.problems.filter((problem) => problem.includes("no session with")).length,
        ).toBe(each.sessions.length);
      }),
      { numRuns: RUNS },
    );
    directory.remove();
  });
});
