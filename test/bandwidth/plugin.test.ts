/** What the plugin does to a container's link, command by command; upstream's 13 cases are among it, by number. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { canMakeNetns, NetnsArea, runIn } from "../support/netns.ts";
import { cniErrorOfRun } from "../support/run-plugin.ts";
import { type Call, RATES, ShapedPod } from "./shaped-pod.ts";

const area = new NetnsArea("bw");
const able = canMakeNetns && Bun.which("tc") !== null;
const why = able ? "" : " (skipped: needs root, ip, tc and nsenter)";
const CODE = { configInvalid: 7, decodeFailure: 6, kernelRefused: 107, checkFailed: 109 } as const;

describe.skipIf(!able)(`bandwidth plugin${why}`, () => {
  let pod: ShapedPod;
  let untouched: string;

  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    pod = new ShapedPod(area);
    untouched = pod.traces();
  });

  describe.each(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])("in version %s", (cniVersion) => {
    test("shapes both directions, and DEL takes all of it away (cases 1 and 7)", async () => {
      const result = await pod.must("ADD", { cniVersion, config: RATES });

      const [ifb = ""] = pod.ifbs();
      expect(result.interfaces.slice(0, 2)).toEqual(pod.prevResult(cniVersion).interfaces);
      expect(result.interfaces.slice(2)).toEqual([{ name: ifb, mac: expect.stringMatching(/^([0-9a-f]{2}:){5}/) }]);
      expect(result).toMatchObject({ cniVersion, ips: pod.prevResult(cniVersion).ips });
      expect(pod.buckets()).toEqual([
        { link: "veth0", rate: 8_000_000, burst: 100_000 },
        { link: ifb, rate: 16_000_000, burst: 100_000 },
      ]);
      expect(pod.redirections()).toEqual([ifb]);

      const prevResult = cniVersion < "0.4.0" ? undefined : result;
      await pod.must("DEL", { cniVersion, config: { ...RATES, prevResult } });
      expect(pod.traces()).toBe(untouched);
    });
  });

  test("shapes one direction alone (cases 2 and 3)", async () => {
    const { ingressRate, ingressBurst, egressRate, egressBurst } = RATES;
    const outgoing = await pod.must("ADD", { config: { egressRate, egressBurst } });
    expect(outgoing.interfaces).toHaveLength(3);
    expect(pod.buckets().map(({ link }) => link)).toEqual(pod.ifbs());
    await pod.must("DEL");

    const incoming = await pod.must("ADD", { config: { ingressRate, ingressBurst } });
    expect(incoming.interfaces).toHaveLength(2);
    expect(pod.buckets().map(({ link }) => link)).toEqual(["veth0"]);
    expect(pod.ifbs()).toEqual([]);
    await pod.must("DEL");
    expect(pod.traces()).toBe(untouched);
  });

  test.each([
    ["a rate without burst (case 4)", { ingressRate: 8000 }, CODE.configInvalid],
    ["a burst of 4 GB (case 13)", { ...RATES, egressBurst: 0xffffffff * 8 }, CODE.configInvalid],
    ["a rate that is text", { ...RATES, egressRate: "16M" }, CODE.decodeFailure],
    ["no prevResult", { ...RATES, prevResult: undefined }, CODE.configInvalid],
    ["a prevResult without interfaces (case 10)", { ...RATES, prevResult: { ips: [] } }, CODE.configInvalid],
    [
      "a prevResult that does not name the other end (case 11)",
      { ...RATES, prevResult: { interfaces: [{ name: "veth9" }, { name: "eth0", sandbox: "x" }] } },
      CODE.configInvalid,
    ],
    [
      "a prevResult that names it inside a sandbox",
      { ...RATES, prevResult: { interfaces: [{ name: "veth0", sandbox: "x" }] } },
      CODE.configInvalid,
    ],
  ])("refuses %s and changes nothing", async (_name, config, code) => {
    expect(cniErrorOfRun(await pod.call("ADD", { config })).code).toBe(code);
    expect(pod.traces()).toBe(untouched);
  });

  test("accepts the largest burst there is, CRI-O's (case 13)", async () => {
    const burst = 0xffffffff * 8 - 1;
    await pod.must("ADD", { config: { ...RATES, ingressBurst: burst, egressBurst: burst } });
    await pod.must("CHECK", { config: { ...RATES, ingressBurst: burst, egressBurst: burst } });

    for (const { rate, burst: seen } of pod.buckets())
      expect(Math.abs(seen / ((rate / 8) * 274) - 1)).toBeLessThan(0.001);
  });

  test("shapes by the runtime's capability (case 5), unless the config names rates itself (case 6)", async () => {
    const runtimeConfig = { bandwidth: { ingressRate: 1_000_000, ingressBurst: 4_294_967_295 } };
    await pod.must("ADD", { config: { runtimeConfig } });
    expect(pod.buckets()).toEqual([{ link: "veth0", rate: 1_000_000, burst: 12_500 }]);

    await pod.must("ADD", { config: { ...RATES, runtimeConfig } });
    expect(pod.buckets().map(({ rate }) => rate)).toEqual([8_000_000, 16_000_000]);
  });

  test("finds the right link among several, and shapes two interfaces of one container apart (case 8)", async () => {
    pod.addVeth("veth1", "eth1", "10.201.0");
    const second = { ifname: "eth1", config: { ...RATES, prevResult: pod.prevResult("1.1.0", "veth1", "eth1") } };
    await pod.must("ADD", second);
    expect(pod.redirections("veth0")).toEqual([]);
    expect(pod.redirections("veth1")).toEqual(pod.ifbs());
    await pod.must("ADD", { config: RATES });

    expect(new Set(pod.ifbs()).size).toBe(2);
    expect(pod.buckets()).toHaveLength(4);
    await pod.must("CHECK", second);
    await pod.must("CHECK", { config: RATES });

    await pod.must("DEL", { config: RATES });
    await pod.must("CHECK", second);
    await pod.must("DEL", second);
    expect(pod.ifbs()).toEqual([]);
    expect(pod.buckets()).toEqual([]);
  });

  test.each([
    ["without another end (case 9)", ["ip", "link", "add", "eth9", "type", "ifb"]],
    ["whose other end is not the host's", ["ip", "link", "add", "eth9", "type", "veth", "peer", "name", "eth8"]],
  ])("refuses an interface %s", async (_name, command) => {
    runIn(pod.pod, command);
    const run = await pod.call("ADD", { ifname: "eth9", config: RATES });

    expect(cniErrorOfRun(run).code).toBe(CODE.configInvalid);
    expect(pod.traces()).toBe(untouched);
  });

  test("passes the result on and touches nothing where no rate is named", async () => {
    for (const command of ["ADD", "CHECK", "DEL"]) await pod.must(command);
    const result = await pod.must("ADD", { config: { ingressRate: 0, ingressBurst: 0 } });

    expect(result).toMatchObject(pod.prevResult());
    expect(pod.traces()).toBe(untouched);
  });

  test("changes nothing by a second ADD, and follows when it names other rates", async () => {
    await pod.must("ADD", { config: RATES });
    const first = pod.traces();
    await pod.must("ADD", { config: RATES });
    expect(pod.traces().replace(/index \d+/g, "")).toBe(first.replace(/index \d+/g, ""));

    await pod.must("ADD", { config: { ...RATES, egressRate: 1_000_000 } });
    expect(pod.buckets().map(({ rate }) => rate)).toEqual([8_000_000, 1_000_000]);
    await pod.must("ADD", { config: { ingressRate: 2_000_000, ingressBurst: 200_000 } });
    expect(pod.buckets().map(({ link, rate }) => [link, rate])).toEqual([["veth0", 2_000_000]]);
    expect(pod.ifbs()).toEqual([]);
    await pod.must("ADD", { config: { egressRate: 2_000_000, egressBurst: 200_000 } });
    expect(pod.buckets().map(({ link }) => link)).toEqual(pod.ifbs());
  });

  test.each([
    ["knows nothing but the name", { netns: undefined, config: { prevResult: undefined } }],
    ["knows the result alone", { netns: undefined }],
    ["knows the namespace alone", { config: { prevResult: undefined } }],
    ["is given rates that ADD would refuse", { config: { ingressRate: 5 } }],
  ])("removes all, also when DEL %s, and again", async (_name, call: Call) => {
    await pod.must("ADD", { config: RATES });
    await pod.must("DEL", call);

    expect(pod.traces()).toBe(untouched);
    await pod.must("DEL", call);
  });

  test("removes what is left when the container is gone", async () => {
    await pod.must("ADD", { config: RATES });
    area.delete(pod.pod);
    await pod.must("DEL", { config: RATES });

    expect(pod.ifbs()).toEqual([]);
  });

  test.each([
    ["a namespace that is gone", "/run/netns/vt-gone"],
    ["no namespace", undefined],
  ])(
    "leaves the link alone that the next container has under the same name, when DEL names %s",
    async (_name, netns) => {
      await pod.must("ADD", { config: RATES });
      const shaped = pod.traces();
      const interfaces = [{ name: "veth0" }, { name: "eth0", sandbox: "/run/netns/vt-gone" }];
      await pod.must("DEL", { containerId: "c0", netns, config: { prevResult: { interfaces } } });

      expect(pod.traces()).toBe(shaped);
      await pod.must("CHECK", { config: RATES });
    },
  );

  test("never leaves a black hole: traffic flows while shaping comes and goes, and behind DEL", async () => {
    const ping = (...more: readonly string[]) =>
      Bun.spawn(["nsenter", `--net=${pod.pod.path}`, "--", "ping", "-q", "-W", "1", ...more, "10.200.0.1"], {
        stdout: "pipe",
      });
    const pinging = ping("-i", "0.002", "-c", "300");
    for (const command of ["ADD", "DEL", "ADD", "DEL"]) await pod.must(command, { config: RATES });
    const received = Number(/(\d+) received/.exec(await new Response(pinging.stdout).text())?.[1]);

    // The kernel itself drops the packet or two that are on their way while the qdisc at the root of a link is exchanged.
    expect(received).toBeGreaterThan(290);
    expect(await new Response(ping("-c", "3", "-i", "0.01").stdout).text()).toContain(" 0% packet loss");
  });

  test("never takes what others put on the link: refuses a foreign root, uses a foreign clsact, leaves both", async () => {
    runIn(pod.host, ["tc", "qdisc", "add", "dev", "veth0", "root", "handle", "7:", "pfifo"]);
    const foreign = pod.traces();
    expect(cniErrorOfRun(await pod.call("ADD", { config: RATES })).code).toBe(CODE.kernelRefused);
    expect(pod.traces()).toBe(foreign);

    runIn(pod.host, ["tc", "qdisc", "del", "dev", "veth0", "root"]);
    runIn(pod.host, ["tc", "qdisc", "add", "dev", "veth0", "clsact"]);
    const hooked = pod.traces();
    await pod.must("ADD", { config: RATES });
    expect(pod.redirections()).toEqual(pod.ifbs());
    await pod.must("CHECK", { config: RATES });
    await pod.must("DEL", { config: RATES });
    expect(pod.traces()).toBe(hooked);
  });

  test("keeps a neighbour's filter at the hook when it takes its own away", async () => {
    await pod.must("ADD", { config: RATES });
    const filter = ["tc", "filter", "add", "dev", "veth0", "ingress", "protocol", "ip", "prio", "9", "u32"];
    runIn(pod.host, [
      ...filter,
      "match",
      "ip",
      "dport",
      "9",
      "0xffff",
      "action",
      "mirred",
      "egress",
      "redirect",
      "dev",
      "lo",
    ]);
    await pod.must("DEL", { config: RATES });

    expect(pod.redirections()).toEqual(["lo"]);
  });

  test.each([
    ["of another priority", ["protocol", "ip", "prio", "9"]],
    ["in the same place", ["protocol", "all", "prio", "1"]],
  ])("shapes beside a neighbour's filter %s that was there before, and leaves it as it was", async (_name, place) => {
    runIn(pod.host, ["tc", "qdisc", "add", "dev", "veth0", "ingress"]);
    const match = "u32 match ip dst 10.9.9.9/32 action mirred egress redirect dev lo".split(" ");
    runIn(pod.host, ["tc", "filter", "add", "dev", "veth0", "ingress", ...place, ...match]);
    const foreign = pod.traces();
    for (let time = 0; time < 2; time++) await pod.must("ADD", { config: RATES });
    expect(pod.redirections().toSorted()).toEqual([...pod.ifbs(), "lo"]);
    await pod.must("CHECK", { config: RATES });
    await pod.must("DEL", { config: RATES });

    expect(pod.traces()).toBe(foreign);
  });

  test("takes over what upstream's plugin made, shaping once, and removes it", async () => {
    const { ifb } = makeAsUpstream(pod);
    await pod.must("ADD", { config: RATES });
    expect(pod.ifbs()).toEqual([ifb]);
    expect(pod.buckets().map(({ rate }) => rate)).toEqual([8_000_000, 16_000_000]);
    expect(pod.redirections()).toEqual([ifb]);
    await pod.must("DEL", { config: RATES });
    expect(pod.traces()).toBe(untouched);

    makeAsUpstream(pod);
    await pod.must("DEL", { config: RATES });
    expect(pod.traces()).toBe(untouched);
  });

  describe("CHECK", () => {
    const tc = (...command: readonly string[]) => runIn(pod.host, ["tc", ...command]);
    const changeBucket = (link: string, ...what: readonly string[]) =>
      tc("qdisc", "change", "dev", link, "root", "handle", "1:", "tbf", ...what);
    const ifb = () => pod.ifbs()[0] ?? "";

    test.each([
      [
        "the rate of what it receives",
        () => changeBucket("veth0", "rate", "9mbit", "burst", "100000", "limit", "125000"),
      ],
      ["the burst", () => changeBucket("veth0", "rate", "8mbit", "burst", "90000", "limit", "125000")],
      ["the limit", () => changeBucket("veth0", "rate", "8mbit", "burst", "100000", "limit", "120000")],
      ["the rate of what it sends", () => changeBucket(ifb(), "rate", "9mbit", "burst", "100000", "limit", "150000")],
      ["a bucket that is gone", () => tc("qdisc", "del", "dev", "veth0", "root")],
      ["the other bucket gone", () => tc("qdisc", "del", "dev", ifb(), "root")],
      ["a redirection that is gone", () => tc("filter", "del", "dev", "veth0", "ingress")],
      ["an ingress hook that is gone", () => tc("qdisc", "del", "dev", "veth0", "ingress")],
      ["a device that is down", () => runIn(pod.host, ["ip", "link", "set", ifb(), "down"])],
      ["a device that is gone", () => runIn(pod.host, ["ip", "link", "del", ifb()])],
      [
        "a redirection to elsewhere",
        () => {
          const place = ["dev", "veth0", "ingress", "protocol", "all", "prio", "1", "handle", "800::800", "u32"];
          tc("filter", "replace", ...place, ..."match u32 0 0 action mirred egress redirect dev lo".split(" "));
        },
      ],
    ])("tells %s", async (_name, damage) => {
      await pod.must("ADD", { config: RATES });
      await pod.must("CHECK", { config: RATES });
      damage();

      expect(cniErrorOfRun(await pod.call("CHECK", { config: RATES })).code).toBe(CODE.checkFailed);
      await pod.must("ADD", { config: RATES });
      await pod.must("CHECK", { config: RATES });
    });

    test.each([8, 44, 1000, 34_359_738_368, 100_000_000_000, 10 ** 15])(
      "agrees with ADD at %d bits per second",
      async (rate) => {
        for (const burst of [8, 1_000_000, 4_294_967_295]) {
          const config = { ingressRate: rate, ingressBurst: burst, egressRate: rate, egressBurst: burst };
          await pod.must("ADD", { config });
          await pod.must("CHECK", { config });
        }
      },
    );
  });

  describe("GC", () => {
    const valid = (...attachments: readonly object[]) => ({ "cni.dev/valid-attachments": attachments });

    test("removes the shaping of attachments that are not listed, and of this network alone", async () => {
      await pod.must("ADD", { config: RATES });
      const shaped = pod.traces();
      await pod.must("GC", { config: valid({ containerID: "c1", ifname: "eth0" }) });
      await pod.must("GC", { config: { name: "other", ...valid() } });
      await pod.must("GC", { config: {} });
      expect(pod.traces()).toBe(shaped);

      await pod.must("GC", { config: valid({ containerID: "c2", ifname: "eth0" }) });
      expect(pod.traces()).toBe(untouched);
    });

    test("removes what is left when the container is gone, whatever the length of its name", async () => {
      const containerId = "c".repeat(400);
      await pod.must("ADD", { containerId, config: RATES });
      area.delete(pod.pod);
      await pod.must("GC", { config: valid({ containerID: containerId, ifname: "eth0" }) });
      expect(pod.ifbs()).toHaveLength(1);
      await pod.must("GC", { config: valid() });
      expect(pod.ifbs()).toEqual([]);
    });
  });

  test("STATUS is well here, and tells a config that no ADD could use", async () => {
    await pod.must("STATUS", { config: RATES });
    expect(cniErrorOfRun(await pod.call("STATUS", { config: { ingressRate: 5 } })).code).toBe(CODE.configInvalid);
  });

  test.skipIf(Bun.which("setpriv") === null)("STATUS tells that the privilege is missing", async () => {
    const under = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"];
    expect(cniErrorOfRun(await pod.call("STATUS", { under })).code).toBe(50);
  });
});

/** The state that upstream's plugin leaves: its IFB bears no alias. */
function makeAsUpstream(pod: ShapedPod): { readonly ifb: string } {
  const ifb = `bwp${new Bun.CryptoHasher("sha512").update("netc1").digest("hex").slice(0, 12)}`;
  const commands = [
    `ip link add ${ifb} type ifb`,
    `ip link set ${ifb} up`,
    `tc qdisc add dev veth0 root handle 1: tbf rate 5mbit burst 50000 limit 60000`,
    `tc qdisc add dev ${ifb} root handle 1: tbf rate 5mbit burst 50000 limit 60000`,
    "tc qdisc add dev veth0 handle ffff: ingress",
    `tc filter add dev veth0 parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev ${ifb}`,
  ];
  for (const command of commands) runIn(pod.host, command.split(" "));
  return { ifb };
}
