/** What the plugin does to a container's link, command by command; numbers refer to upstream's 13 test cases. */
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
    test("shapes both directions, and DEL removes everything (cases 1 and 7)", async () => {
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
      "a prevResult that does not list the other end (case 11)",
      { ...RATES, prevResult: { interfaces: [{ name: "veth9" }, { name: "eth0", sandbox: "x" }] } },
      CODE.configInvalid,
    ],
    [
      "a prevResult that lists it inside a sandbox",
      { ...RATES, prevResult: { interfaces: [{ name: "veth0", sandbox: "x" }] } },
      CODE.configInvalid,
    ],
  ])("refuses %s and changes nothing", async (_name, config, code) => {
    expect(cniErrorOfRun(await pod.call("ADD", { config })).code).toBe(code);
    expect(pod.traces()).toBe(untouched);
  });

  test("accepts the largest burst, which CRI-O sends (case 13)", async () => {
    const burst = 0xffffffff * 8 - 1;
    await pod.must("ADD", { config: { ...RATES, ingressBurst: burst, egressBurst: burst } });
    await pod.must("CHECK", { config: { ...RATES, ingressBurst: burst, egressBurst: burst } });

    for (const { rate, burst: seen } of pod.buckets())
      expect(Math.abs(seen / ((rate / 8) * 274) - 1)).toBeLessThan(0.001);
  });

  test("shapes by the runtime's capability (case 5), unless the config itself has rates (case 6)", async () => {
    const runtimeConfig = { bandwidth: { ingressRate: 1_000_000, ingressBurst: 4_294_967_295 } };
    await pod.must("ADD", { config: { runtimeConfig } });
    expect(pod.buckets()).toEqual([{ link: "veth0", rate: 1_000_000, burst: 12_500 }]);

    await pod.must("ADD", { config: { ...RATES, runtimeConfig } });
    expect(pod.buckets().map(({ rate }) => rate)).toEqual([8_000_000, 16_000_000]);
  });

  test("finds the right link among several, and shapes two interfaces of one container separately (case 8)", async () => {
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
    ["whose other end is not on the host", ["ip", "link", "add", "eth9", "type", "veth", "peer", "name", "eth8"]],
  ])("refuses an interface %s", async (_name, command) => {
    runIn(pod.pod, command);
    const run = await pod.call("ADD", { ifname: "eth9", config: RATES });

    expect(cniErrorOfRun(run).code).toBe(CODE.configInvalid);
    expect(pod.traces()).toBe(untouched);
  });

  test("passes the result on and changes nothing without rates", async () => {
    for (const command of ["ADD", "CHECK", "DEL"]) await pod.must(command);
    const result = await pod.must("ADD", { config: { ingressRate: 0, ingressBurst: 0 } });

    expect(result).toMatchObject(pod.prevResult());
    expect(pod.traces()).toBe(untouched);
  });

  test("changes nothing at a second ADD with the same rates, and applies other rates", async () => {
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
    ["has neither namespace nor prevResult", { netns: undefined, config: { prevResult: undefined } }],
    ["has no namespace", { netns: undefined }],
    ["has no prevResult", { config: { prevResult: undefined } }],
    ["has rates that ADD would refuse", { config: { ingressRate: 5 } }],
  ])("removes everything if DEL %s, and succeeds a second time", async (_name, call: Call) => {
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
    "does not touch a link of the same name that belongs to the next container, if DEL has %s",
    async (_name, netns) => {
      await pod.must("ADD", { config: RATES });
      const shaped = pod.traces();
      const interfaces = [{ name: "veth0" }, { name: "eth0", sandbox: "/run/netns/vt-gone" }];
      await pod.must("DEL", { containerId: "c0", netns, config: { prevResult: { interfaces } } });

      expect(pod.traces()).toBe(shaped);
      await pod.must("CHECK", { config: RATES });
    },
  );

  test("never interrupts traffic while shaping is added and removed, nor after DEL", async () => {
    const ping = (...more: readonly string[]) =>
      Bun.spawn(["nsenter", `--net=${pod.pod.path}`, "--", "ping", "-q", "-W", "1", ...more, "10.200.0.1"], {
        stdout: "pipe",
      });
    const pinging = ping("-i", "0.002", "-c", "300");
    for (const command of ["ADD", "DEL", "ADD", "DEL"]) await pod.must(command, { config: RATES });
    const received = Number(/(\d+) received/.exec(await new Response(pinging.stdout).text())?.[1]);

    // The kernel itself drops the one or two packets in transit while the root qdisc of a link is replaced.
    expect(received).toBeGreaterThan(290);
    expect(await new Response(ping("-c", "3", "-i", "0.01").stdout).text()).toContain(" 0% packet loss");
  });

  test("never removes what others attached: refuses a foreign root qdisc, uses a foreign clsact, keeps both", async () => {
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

  test("keeps a filter of another program at the hook when it removes its own", async () => {
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
    ["of the same priority", ["protocol", "all", "prio", "1"]],
  ])("shapes next to an existing filter %s of another program, and leaves it unchanged", async (_name, place) => {
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

  test("takes over what upstream's plugin created, shapes once, and removes it", async () => {
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
    ])("reports %s", async (_name, damage) => {
      await pod.must("ADD", { config: RATES });
      await pod.must("CHECK", { config: RATES });
      damage();

      expect(cniErrorOfRun(await pod.call("CHECK", { config: RATES })).code).toBe(CODE.checkFailed);
      await pod.must("ADD", { config: RATES });
      await pod.must("CHECK", { config: RATES });
    });

    test.each([8, 44, 1000, 34_359_738_368, 100_000_000_000, 10 ** 15])(
      "confirms what ADD set at %d bits per second",
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

    test("removes the shaping of attachments that are not listed, in this network only", async () => {
      await pod.must("ADD", { config: RATES });
      const shaped = pod.traces();
      await pod.must("GC", { config: valid({ containerID: "c1", ifname: "eth0" }) });
      await pod.must("GC", { config: { name: "other", ...valid() } });
      await pod.must("GC", { config: {} });
      expect(pod.traces()).toBe(shaped);

      await pod.must("GC", { config: valid({ containerID: "c2", ifname: "eth0" }) });
      expect(pod.traces()).toBe(untouched);
    });

    test("removes what is left of a deleted container with a name of any length", async () => {
      const containerId = "c".repeat(400);
      await pod.must("ADD", { containerId, config: RATES });
      area.delete(pod.pod);
      await pod.must("GC", { config: valid({ containerID: containerId, ifname: "eth0" }) });
      expect(pod.ifbs()).toHaveLength(1);
      await pod.must("GC", { config: valid() });
      expect(pod.ifbs()).toEqual([]);
    });
  });

  test("STATUS succeeds here, and reports a config that ADD would refuse", async () => {
    await pod.must("STATUS", { config: RATES });
    expect(cniErrorOfRun(await pod.call("STATUS", { config: { ingressRate: 5 } })).code).toBe(CODE.configInvalid);
  });

  test.skipIf(Bun.which("setpriv") === null)("STATUS reports a missing privilege", async () => {
    const under = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"];
    expect(cniErrorOfRun(await pod.call("STATUS", { under })).code).toBe(50);
  });
});

/** The state that upstream's plugin leaves: its IFB has no alias. */
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
