/** What is refused and accepted in the kinds of BGP. The API server refuses the same: test/kube/crds.test.ts. */
import { describe, expect, test } from "bun:test";
import { BAD_BGP, GOOD_BGP } from "../../test/support/bad-bgp.ts";
import { API_VERSION } from "../identity.ts";
import { formatAddress } from "../ip/address.ts";
import { parseAsNumber } from "./as-number.ts";
import { bgpConfiguration, bgpSettings } from "./bgp-configuration.ts";
import { parsePeerAddress, restartSeconds } from "./bgp-fields.ts";
import { bgpPeer } from "./bgp-peer.ts";
import { findKind, PUBLIC_KINDS } from "./kinds.ts";

function problemsOf(kind: string, name: string, spec: object) {
  const codec = findKind(PUBLIC_KINDS, kind)?.codec;
  if (codec === undefined) throw new Error(`no kind ${kind}`);
  const decoded = codec.decode({ apiVersion: API_VERSION, kind, metadata: { name }, spec });
  return decoded.ok ? [] : decoded.problems;
}

describe("kinds of BGP", () => {
  test.each(BAD_BGP.map((bad) => [`${bad.kind} with ${bad.what}`, bad] as const))("refuse a %s", (_, bad) => {
    const problems = problemsOf(bad.kind, bad.name ?? "bad", bad.spec);

    expect(problems.map(({ path }) => path)).toEqual([bad.path]);
    expect(problems[0]?.message).toContain(bad.message);
  });

  test.each(GOOD_BGP.map((good) => [`${good.kind} ${good.name}`, good] as const))("accept %s", (_, good) => {
    expect(problemsOf(good.kind, good.name ?? "", good.spec)).toEqual([]);
  });

  test("refuse an unknown field by its name, and suggest a similar one", () => {
    expect(problemsOf("BGPPeer", "a", { peerIP: "192.0.2.1", asNumber: 1, peerip: "" })).toMatchObject([
      { path: "spec.peerip", message: 'is not a known field; did you mean "peerIP"?' },
    ]);
  });

  test("take an empty text of a peer as absent, as programs in Go write it", () => {
    const read = bgpPeer.readObject(
      { kind: "BGPPeer", metadata: { name: "a" }, spec: { node: "", nodeSelector: "", peerSelector: "all()" } },
      "key",
    );
    expect(read.spec).toEqual({ peerSelector: "all()" });
  });
});

describe("parseAsNumber()", () => {
  test.each([
    [64_512, 64_512],
    ["4294967295", 4_294_967_295],
    ["1.10", 65_546],
    ["0.1", 1],
    [0, undefined],
    ["0.0", undefined],
    ["65536.1", undefined],
    [4_294_967_296, undefined],
    ["1.5", 65_541],
    [1.1, undefined],
    ["1.5.1", undefined],
    ["", undefined],
  ] as const)("of %p is %p", (given, number) => {
    expect(parseAsNumber(given)).toBe(number);
  });
});

describe("parsePeerAddress()", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1", undefined],
    ["192.0.2.1:1790", "192.0.2.1", 1790],
    ["fd00::1:179", "fd00::1:179", undefined],
    ["[fd00::1]:179", "fd00::1", 179],
  ])("of %p", (text, address, port) => {
    const read = parsePeerAddress(text);
    expect([read && formatAddress(read.address), read?.port]).toEqual([address, port]);
  });
});

describe("restartSeconds()", () => {
  test.each([
    ["120s", 120],
    ["2m", 120],
    ["1h8m15s", 4095],
    ["", 0],
    ["soon", 0],
  ])("of %p is %p", (text, seconds) => {
    expect(restartSeconds(text)).toBe(seconds);
  });
});

describe("bgpSettings()", () => {
  const make = (name: string, spec: object) => bgpConfiguration.make({ name }, spec);

  test("are those of the node, then those of all nodes, then the built-in ones", () => {
    const settings = bgpSettings(
      [
        make("node.here", { listenPort: 1, communities: [{ name: "own", value: "1:1" }] }),
        make("node.there", { listenPort: 2 }),
        make("default", { listenPort: 3, asNumber: 65_000, communities: [{ name: "all", value: "1:2" }] }),
      ],
      "here",
    );

    expect(settings).toEqual({
      nodeToNodeMeshEnabled: true,
      asNumber: 65_000,
      listenPort: 1,
      bindMode: "None",
      logSeverityScreen: "Info",
      communities: [
        { name: "own", value: "1:1" },
        { name: "all", value: "1:2" },
      ],
    });
  });
});
