import { describe, expect, test } from "bun:test";
import { bgpPlan, bgpSession, prefixes } from "../../../test/support/bgp-plan.ts";
import { address, prefix } from "../../../test/support/ip.ts";
import type { BgpRule } from "../bgp/plan.ts";
import { announcedBy, renderBird, renderEmptyBird } from "./render.ts";

const settings = { logFile: "/var/log/bird.log", ownInterfaces: ["pod*"], agentProtocol: 86 };
const rule: BgpRule = { action: "accept", network: undefined, onlyLearned: false, interface: undefined };
const network = prefix("10.9.0.0/16");

/** The block that starts with this line. */
function part(text: string, head: string): string {
  const from = text.indexOf(`${head} {`);
  return text.slice(from, text.indexOf("\n}", from) + 2);
}

describe("renderBird()", () => {
  test("writes the whole configuration of a node of a mesh", async () => {
    const plan = bgpPlan("10.0.0.1", {
      announced: prefixes("10.244.1.0/26", "fd10::40/122"),
      exported: prefixes("10.244.0.0/16", "fd10::/48"),
      accepted: prefixes("10.9.0.0/26", "10.244.0.0/16", "fd10::/48"),
      withheld: prefixes("10.244.9.0/24"),
      tunnelled: prefixes("10.245.0.0/16"),
      advertisements: [
        {
          prefix: network,
          communities: [
            [65000, 1],
            [1, 2, 3],
          ],
        },
      ],
      ignoredInterfaces: ["docker*"],
      sessions: [bgpSession("10.0.0.2", { source: address("10.0.0.1"), passive: true })],
    });

    const golden = await Bun.file(`${import.meta.dir}/mesh-node.conf`).text();
    expect(renderBird(plan, settings)).toEqual({ text: golden, problems: [] });
  });

  test("writes every option of a session", () => {
    const session = bgpSession("fd00::2", {
      ...{ kind: "global", from: "tor", name: "Global_fd00__2", port: 1790, localAs: 64513, peerAs: 64513 },
      ...{ password: "pass#word;", reflector: { clusterId: "1.2.3.4" }, nextHop: "keep", restartSeconds: 30 },
      ...{ allowedOwnAs: 2, ttlSecurityHops: 1 },
    });
    const { text } = renderBird(
      bgpPlan("10.0.0.1", {
        sessions: [session],
        listenOn: "node",
        listenPort: 1179,
        addresses: { 6: address("fd00::1") },
      }),
      settings,
    );

    expect(part(text, "protocol bgp Global_fd00__2")).toBe(`protocol bgp Global_fd00__2 {
  description "global: tor";
  local fd00::1 port 1179 as 64513;
  neighbor fd00::2 port 1790 as 64513;
  multihop 1;
  ttl security on;
  strict bind on;
  password "pass#word;";
  rr client;
  rr cluster id 1.2.3.4;
  allow local as 2;
  graceful restart on;
  graceful restart time 30;
  connect delay time 1;
  connect retry time 5;
  error wait time 1, 10;
  ipv6 {
    import filter {
      accept;
    };
    export filter {
      add_communities6();
      if is_sent6() then accept;
      reject;
    };
    gateway recursive;
    add paths on;
    next hop keep;
  };
}`);
  });

  test("writes rules in their order, and leaves out those of the other family", () => {
    const ipv6 = prefix("fd10::/48");
    const importRules: readonly BgpRule[] = [
      { ...rule, network: { prefix: network, lengths: { from: 16, to: 16 }, isNegated: false } },
      { ...rule, network: { prefix: ipv6, lengths: { from: 48, to: 128 }, isNegated: false } },
      { ...rule, network: { prefix: network, lengths: { from: 0, to: 24 }, isNegated: true }, onlyLearned: true },
      { ...rule, action: "reject", interface: "eth*" },
      { ...rule, action: "reject" },
    ];
    const { text } = renderBird(bgpPlan("10.0.0.1", { sessions: [bgpSession("10.0.0.2", { importRules })] }), settings);

    expect(part(text, "protocol bgp Mesh_10_0_0_2")).toContain(`
      if net ~ [ 10.9.0.0/16{16, 16} ] then accept;
      if !(net ~ [ 10.9.0.0/16{16, 24} ]) && source = RTS_BGP then accept;
      if ifname ~ "eth*" then reject;
      reject;
`);
  });

  test("gives its routes to the kernel behind those of the agent and of pods, in both families", () => {
    const { text } = renderBird(bgpPlan("10.0.0.1"), settings);

    expect(part(text, "protocol kernel kernel4")).toContain("metric 32;");
    expect(part(text, "protocol kernel kernel6")).toContain("metric 2048;");
  });

  test("listens on all addresses if the node has none of the family of the session, since BIRD must not refuse it", () => {
    const plan = bgpPlan("10.0.0.1", { sessions: [bgpSession("fd00::2")], listenOn: "node" });

    expect(renderBird(plan, settings).text).not.toContain("strict bind");
  });

  test("lets a router of another AS prefer the node that has a block", () => {
    const sessions = [bgpSession("10.0.0.2"), bgpSession("10.0.0.3", { peerAs: 65000 })];
    const { text } = renderBird(bgpPlan("10.0.0.1", { sessions }), settings);

    expect(part(text, "protocol bgp Mesh_10_0_0_2")).not.toContain("bgp_med");
    expect(part(text, "protocol bgp Mesh_10_0_0_3")).toContain("bgp_path.len = 0 then bgp_med = 100;");
  });

  test("does not lead packets of services to this node that another node announces", () => {
    const sessions = [
      bgpSession("10.0.0.2"),
      bgpSession("10.0.0.3", { peerAs: 65000 }),
      bgpSession("10.0.0.4", { peerAs: 65000, nextHop: "keep" }),
      bgpSession("10.0.0.5", { nextHop: "self" }),
      bgpSession("fd00::3", { peerAs: 65000 }),
    ];
    const { text } = renderBird(bgpPlan("10.0.0.1", { sessions, services: prefixes("192.0.2.0/24") }), settings);
    const rejects = (name: string) =>
      part(text, `protocol bgp Mesh_${name}`).includes("if source = RTS_BGP && net ~ [ 192.0.2.0/24+ ] then reject;");

    expect(["10_0_0_2", "10_0_0_3", "10_0_0_4", "10_0_0_5", "fd00__3"].map(rejects)).toEqual([
      ...[false, true, false, true, false],
    ]);
  });

  test("does not lead packets of single addresses to this node that another node announces in a pool with a tunnel", () => {
    const sessions = [
      ...[bgpSession("10.0.0.2"), bgpSession("10.0.0.3", { peerAs: 65000 })],
      bgpSession("10.0.0.4", { peerAs: 65000, nextHop: "keep" }),
      bgpSession("fd00::3", { peerAs: 65000 }),
    ];
    const { text } = renderBird(
      bgpPlan("10.0.0.1", { sessions, tunnelled: prefixes("10.9.0.0/16", "fd10::/48") }),
      settings,
    );
    const rejects = (name: string) =>
      part(text, `protocol bgp Mesh_${name}`).match(/if source = RTS_BGP && net ~ \[ (.*) \] then reject;/)?.[1];

    expect(["10_0_0_2", "10_0_0_3", "10_0_0_4", "fd00__3"].map(rejects)).toEqual([
      ...[undefined, "10.9.0.0/16{32, 32}", undefined, "fd10::/48{128, 128}"],
    ]);
  });

  test("does not make the peer of another AS a client of the reflector, which BIRD refuses", () => {
    const sessions = [bgpSession("10.0.0.2", { peerAs: 65000, reflector: { clusterId: "1.1.1.1" } })];

    expect(renderBird(bgpPlan("10.0.0.1", { sessions }), settings).text).not.toContain("rr c");
  });

  test("leaves out sessions of a node whose own address is link-local, if BIRD listens on that alone", () => {
    const sessions = [bgpSession("fd00::2")];
    const addresses = { 6: address("fe80::1") };

    expect(renderBird(bgpPlan("10.0.0.1", { sessions, addresses, listenOn: "node" }), settings).problems).toEqual([
      expect.stringContaining("link-local"),
    ]);
    expect(renderBird(bgpPlan("10.0.0.1", { sessions, addresses, listenOn: "all" }), settings).problems).toEqual([]);
  });

  test.each([
    ["a password with a quotation mark", { password: 'a"; protocol bgp Evil { }' }, "quotation mark"],
    ["a password with a line break", { password: "a\nb" }, "line break"],
    ["a password that the kernel cannot use", { password: "x".repeat(81) }, "81 bytes"],
    ["an interface with a quotation mark", { importRules: [{ ...rule, interface: 'e"' }] }, "interface"],
    ["a name that is a keyword", { name: "base" }, "not a name"],
    ["a link-local address", { address: address("fe80::1") }, "link-local"],
    ["a link-local source", { address: address("fd00::9"), source: address("fe80::1") }, "link-local"],
    ["no AS number", { peerAs: 0 }, "AS number"],
    ["a cluster ID that BIRD would read as more", { reflector: { clusterId: "1.1.1.1; }\nlog all" } }, "cluster ID"],
  ])("leaves out a session with %s, and says so without the password", (_, more, reason) => {
    const { text, problems } = renderBird(
      bgpPlan("10.0.0.1", { sessions: [bgpSession("10.0.0.2", more), bgpSession("10.0.0.3")] }),
      settings,
    );

    expect(problems).toEqual([expect.stringContaining(reason)]);
    if ("password" in more) expect(problems.join()).not.toContain(more.password);
    expect([...text.matchAll(/^protocol bgp (\S+)/gm)].map(([, name]) => name)).toEqual(["Mesh_10_0_0_3"]);
  });

  test("replaces what cannot be quoted in a text for people", () => {
    const { text } = renderBird(
      bgpPlan("10.0.0.1", { sessions: [bgpSession("10.0.0.2", { from: 'a"\nb' })] }),
      settings,
    );

    expect(text).toContain(`description "node-to-node mesh: a' b";`);
  });

  test("does not ignore an interface whose name cannot be quoted, and says so", () => {
    const { text, problems } = renderBird(bgpPlan("10.0.0.1", { ignoredInterfaces: ['x"', "ok"] }), settings);

    expect(text).toContain('interface -"pod*", -"ok", "*";');
    expect(problems).toEqual([expect.stringContaining("is not ignored")]);
  });
});

describe("announcedBy()", () => {
  test("reads what a configuration announces", () => {
    const announced = prefixes("10.244.1.0/26", "192.0.2.7/32", "fd10::7/128");
    const { text } = renderBird(bgpPlan("10.0.0.1", { announced, sessions: [bgpSession("10.0.0.2")] }), settings);

    expect(announcedBy(text)).toEqual(announced);
    expect(announcedBy(renderEmptyBird(settings))).toEqual([]);
  });
});

describe("renderEmptyBird()", () => {
  test("has no session and announces nothing, and keeps the kernel's protocol, which removes the learned routes", () => {
    const text = renderEmptyBird(settings);

    expect(text).not.toContain("protocol bgp");
    expect(text).not.toContain("blackhole");
    expect(text).toContain("protocol kernel kernel4");
    expect(text).toContain("protocol kernel kernel6");
  });
});
