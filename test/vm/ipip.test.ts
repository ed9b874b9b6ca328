/**
 * Pods of two nodes that are two guests, each with its own kernel, in pools with `ipipMode`:
 *
 *   guest west  10.1.1.1 ── cable ── 10.1.1.2, later 10.1.2.2  guest east
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { resource } from "../routing/resource.ts";
import { hasEtcd } from "../support/etcd.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { type Guest, guestProblem, KERNELS, type Kernel, startGuest } from "./guest.ts";
import { type GuestNode, type GuestPod, openGuestNode, startGuestEtcd } from "./guest-node.ts";
import { ask, serve } from "./talk.ts";

const ENDPOINT = "http://10.1.1.1:2379";
const POOL = { cidr: "10.50.0.0/16", natOutgoing: true };
const PATIENCE_MILLISECONDS = 240_000;
const TEST_MILLISECONDS = 600_000;
const COUNTER =
  "table inet seen { counter ipip {}; chain arriving { type filter hook prerouting priority -400; meta l4proto 4 counter name ipip; }; }";

interface Side {
  readonly guest: Guest;
  readonly node: GuestNode;
  readonly pod: GuestPod;
}

for (const kernel of proofSize<readonly Kernel[]>({ everyDay: ["linux-6.1"], soak: KERNELS })) {
  const needs = [await guestProblem(kernel), hasEtcd ? undefined : "needs etcd", program("nft"), program("python3")];
  const test = testNeeding(...needs);

  describe(`two guests with ${kernel}`, () => {
    const undo = new AsyncDisposableStack();
    let west: Side;
    let east: Side;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      [west, east] = await startSides(kernel, undo);
    }, TEST_MILLISECONDS);
    afterAll(() => undo.disposeAsync());

    /** Packets of IPIP that arrive at the other guest while one pod asks the other, which answers. */
    const tunnelled = async (): Promise<number> => {
      const before = await ipipPackets(east.guest);
      const reply = await ask(west.guest, { netns: west.pod.name, address: east.pod.address, port: 80 });
      expect(reply).toBe(`east to ${west.pod.address}`);
      return (await ipipPackets(east.guest)) - before;
    };
    const until = async (expected: "in a tunnel" | "without a tunnel") =>
      pollUntil(
        async () => (await tunnelled()) > 0 === (expected === "in a tunnel"),
        `packets ${expected}`,
        PATIENCE_MILLISECONDS,
      );

    test(
      "ipipMode Always: every packet between pods is in a tunnel, both ways",
      async () => {
        await until("in a tunnel");
        const reply = await ask(east.guest, { netns: east.pod.name, address: west.pod.address, port: 80 });
        expect(reply).toBe(`west to ${east.pod.address}`);
        // The largest packet that fits, and none that is larger.
        const ping = (size: number) =>
          ["nsenter", `--net=/run/netns/${west.pod.name}`].concat([
            "ping",
            "-c",
            "1",
            "-W",
            "10",
            "-M",
            "do",
            "-s",
            String(size),
            east.pod.address,
          ]);
        await west.guest.must(ping(1480 - 28));
        expect((await west.guest.run(ping(1480 - 27))).code).not.toBe(0);
      },
      TEST_MILLISECONDS,
    );

    if (!proofSize({ everyDay: false, soak: true })) return;

    test(
      "ipipMode CrossSubnet: without a tunnel in one subnet, in a tunnel between two",
      async () => {
        await west.node.apply(resource("IPPool", "ipip", { ...POOL, ipipMode: "CrossSubnet" }));
        await until("without a tunnel");
        await east.guest.must([
          "sh",
          "-ec",
          "ip address flush dev eth0; ip address add 10.1.2.2/24 dev eth0; ip route add 10.1.1.0/24 dev eth0",
        ]);
        await until("in a tunnel");
      },
      TEST_MILLISECONDS,
    );
  });
}

async function startSides(kernel: Kernel, undo: AsyncDisposableStack): Promise<[Side, Side]> {
  const folder = temporaryDirectory("cable");
  undo.defer(() => folder.remove());
  const ends = ["west", "east"].map((name) => join(folder.path, name)) as [string, string];
  const [west, east] = await Promise.all([
    startGuest({ kernel, cable: { own: ends[0], other: ends[1] }, memoryMegabytes: 1536 }),
    startGuest({ kernel, cable: { own: ends[1], other: ends[0] }, memoryMegabytes: 1536 }),
  ]);
  undo.use(west);
  undo.use(east);
  // The second route is used once the other guest is in another subnet.
  const network = (
    address: string,
  ) => `ip address add ${address}/24 dev eth0; ip link set eth0 up; ip route add 10.1.2.0/24 dev eth0
    echo 1 >/proc/sys/net/ipv4/ip_forward; nft '${COUNTER}'`;
  await Promise.all([west.must(["sh", "-ec", network("10.1.1.1")]), east.must(["sh", "-ec", network("10.1.1.2")])]);
  await startGuestEtcd(west, ENDPOINT);
  const nodes = {
    west: openGuestNode(west, { name: "west", endpoint: ENDPOINT }),
    east: openGuestNode(east, { name: "east", endpoint: ENDPOINT }),
  };
  await nodes.west.admin("datastore init");
  await nodes.west.apply(
    resource("IPPool", "ipip", { ...POOL, ipipMode: "Always" }),
    resource("Node", "west", {}),
    resource("Node", "east", {}),
  );
  const side = async (name: "west" | "east"): Promise<Side> => {
    const node = nodes[name];
    await node.startAgent();
    const pod = await node.addPod(name);
    await serve(node.guest, { netns: name, name, port: 80 });
    return { guest: node.guest, node, pod };
  };
  return Promise.all([side("west"), side("east")]);
}

async function ipipPackets(guest: Guest): Promise<number> {
  return Number(/packets (\d+)/.exec(await guest.must(["nft", "list", "counter", "inet", "seen", "ipip"]))?.[1]);
}
