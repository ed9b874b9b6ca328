/**
 * Pods of two nodes that are two guests, each with its own kernel, in pools with `ipipMode`:
 *
 *   guest west  10.1.1.1 ── cable ── 10.1.1.2, later 10.1.2.2  guest east
 *         └────────── this machine, with etcd and the admin tool ──────────┘
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { resource } from "../routing/resource.ts";
import { hasEtcd, startEtcd } from "../support/etcd.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { type Guest, guestProblem, KERNELS, type Kernel, startGuest } from "./guest.ts";
import { type GuestPod, openGuestNode } from "./guest-node.ts";
import { ask, serve } from "./talk.ts";

const POOL = { cidr: "10.50.0.0/16", natOutgoing: true };
const ADDRESSES = { west: "10.1.1.1", east: "10.1.1.2" };
const MACHINE_NETWORKS = { west: "10.1.8", east: "10.1.9" };
const PATIENCE_MILLISECONDS = 240_000;
const TEST_MILLISECONDS = 600_000;
const COUNTER =
  "table inet seen { counter ipip {}; chain arriving { type filter hook prerouting priority -400; meta l4proto 4 counter name ipip; }; }";

interface Side {
  readonly guest: Guest;
  readonly pod: GuestPod;
}

for (const kernel of proofSize<readonly Kernel[]>({ everyDay: ["linux-6.1"], soak: KERNELS })) {
  const needs = [await guestProblem(kernel), hasEtcd ? undefined : "needs etcd", program("nft"), program("python3")];
  const test = testNeeding(...needs);

  describe(`two guests with ${kernel}`, () => {
    const undo = new AsyncDisposableStack();
    let west: Side;
    let east: Side;
    let endpoint: string;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      const etcd = await startEtcd();
      undo.defer(() => etcd.stop());
      endpoint = etcd.endpoints[0] ?? "";
      [west, east] = await startSides(kernel, endpoint, undo);
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
        apply(endpoint, resource("IPPool", "ipip", { ...POOL, ipipMode: "CrossSubnet" }));
        await until("without a tunnel");
        await east.guest.must([
          "sh",
          "-ec",
          "ip address add 10.1.2.2/24 dev eth0; ip address delete 10.1.1.2/24 dev eth0; ip route add 10.1.1.0/24 dev eth0",
        ]);
        await until("in a tunnel");
      },
      TEST_MILLISECONDS,
    );
  });
}

async function startSides(kernel: Kernel, endpoint: string, undo: AsyncDisposableStack): Promise<[Side, Side]> {
  const folder = temporaryDirectory("cable");
  undo.defer(() => folder.remove());
  admin(endpoint, ["datastore", "init"]);
  apply(
    endpoint,
    resource("IPPool", "ipip", { ...POOL, ipipMode: "Always" }),
    ...[resource("Node", "west", {}), resource("Node", "east", {})],
    resource("NodeAgentConfiguration", "default", { ipv4AddressDetection: "interface=eth0" }),
  );

  const side = async (name: "west" | "east"): Promise<Side> => {
    const cable = { own: join(folder.path, name), other: join(folder.path, name === "west" ? "east" : "west") };
    const network = MACHINE_NETWORKS[name];
    const guest = await startGuest({ kernel, cable, machineNetwork: `${network}.0/24`, memoryMegabytes: 1536 });
    undo.use(guest);
    // The last route is used once the other guest is in another subnet.
    const script = `ip address add ${ADDRESSES[name]}/24 dev eth0; ip link set eth0 up
      ip address add ${network}.1/24 dev eth1; ip link set eth1 up; ip route add 10.1.2.0/24 dev eth0
      echo 1 >/proc/sys/net/ipv4/ip_forward; nft '${COUNTER}'`;
    await guest.must(["sh", "-ec", script]);
    const node = openGuestNode(guest, { name, endpoint: `http://${network}.2:${new URL(endpoint).port}` });
    await node.startAgent();
    const pod = await node.addPod(name);
    await serve(guest, { netns: name, name, port: 80 });
    return { guest, pod };
  };
  return Promise.all([side("west"), side("east")]);
}

function apply(endpoint: string, ...resources: readonly object[]): void {
  admin(endpoint, ["apply", "-f", "-"], resources.map((each) => JSON.stringify(each)).join("\n---\n"));
}

/** On this machine, which is many times as fast. */
function admin(endpoint: string, words: readonly string[], stdin = ""): void {
  const env = { ...process.env, DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: endpoint };
  const command = [builtProgram(identity.adminTool), ...words];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { env, stdin: Buffer.from(stdin) });
  if (exitCode !== 0) throw new Error(`"${words.join(" ")}" ended with ${exitCode}: ${stdout}${stderr}`);
}

async function ipipPackets(guest: Guest): Promise<number> {
  return Number(/packets (\d+)/.exec(await guest.must(["nft", "list", "counter", "inet", "seen", "ipip"]))?.[1]);
}
