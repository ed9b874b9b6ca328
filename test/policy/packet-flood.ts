/**
 * A flood of packets from one network namespace to an open and a closed port of another, while the rules between them
 * change. Packets are counted where they arrive, before any socket, and where they enter and leave the host whose rules
 * change. So a loss tells its place:
 *
 *   client ── link ──> host: entered ── rules ──> left ── link ──> server: arrived
 *
 * Packets that the host loses are the rules' fault; those that a link loses are the kernel's queue's, or the test's.
 */
import { identity } from "../../src/identity.ts";
import { writeSysctl } from "../../src/linux/sysctl.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

/** The flooded ports. */
export const OPEN = 5301;
const CLOSED = 5302;
export const CLIENT = "10.91.1.2";
export const SERVER = "10.91.2.2";
/** Interfaces of pods: to the client and to the server. */
export const INTERFACES = ["0", "1"].map((index) => identity.interfacePrefix + index);

export const floodProblem =
  canMakeNetns && Bun.which("nft") !== null && Bun.which("taskset") !== null
    ? undefined
    : "needs root, ip, nsenter, nft and taskset";

export interface Flood {
  /** Paths of the namespaces. */
  readonly from: string;
  /** The host's. */
  readonly by: string;
  readonly to: string;
  readonly address: string;
  readonly milliseconds: number;
}

/** How many packets to the open port were lost, and where. */
export interface Lost {
  readonly onLinkOfClient: number;
  readonly inHost: number;
  readonly onLinkOfServer: number;
}

export const NONE_LOST: Lost = { onLinkOfClient: 0, inHost: 0, onLinkOfServer: 0 };

export interface Flooded {
  readonly lost: Lost;
  readonly leaked: number;
  /** To the open port. */
  readonly sent: number;
}

/** Resolves when the flood has begun, to what becomes of it. */
export async function startFlood({ from, by, to, address, milliseconds }: Flood): Promise<() => Promise<Flooded>> {
  runIn({ name: "", path: to }, ["nft", "-f", "-"], ARRIVALS);
  runIn({ name: "", path: by }, ["nft", "-f", "-"], PASSAGE);
  const program = [process.execPath, `${import.meta.dir}/flood-sender.process.ts`];
  const numbers = [milliseconds, OPEN, CLOSED].map(String);
  const sender = Bun.spawn(
    ["taskset", "-c", lastProcessor(), "nsenter", `--net=${from}`, ...program, address, ...numbers],
    { stdout: "pipe", stderr: "inherit" },
  );
  const output = sender.stdout.getReader();
  await output.read();
  return async () => {
    const [sent = 0] = new TextDecoder()
      .decode((await output.read()).value)
      .split(" ")
      .map(Number);
    await sender.exited;
    const [entered = 0, left = 0] = countsIn(by);
    const [arrived = 0, leaked = 0] = countsIn(to);
    const lost = { onLinkOfClient: sent - entered, inHost: entered - left, onLinkOfServer: left - arrived };
    return { lost, leaked, sent };
  };
}

function countsIn(path: string): readonly number[] {
  const counters = runIn({ name: "", path }, ["nft", "list", "counters", "table", "inet", "seen"]);
  return Array.from(counters.matchAll(/packets (\d+)/g), ([, count]) => Number(count));
}

/** Two pods, as network namespaces, behind a host. */
export interface FloodSite extends Disposable {
  readonly host: TestNetns;
  /** Calls `change` again and again beside the flood. */
  flood(milliseconds: number, change: () => void): Promise<Flooded & { readonly changes: number }>;
}

/** `area`: a short word that no other test file uses. `interfaces`: the host's, to the client and to the server. */
export function openFloodSite(area: string, interfaces: readonly string[] = INTERFACES): FloodSite {
  const namespaces = new NetnsArea(area);
  namespaces.sweep();
  const [host, client, server] = [namespaces.create("host"), namespaces.create("client"), namespaces.create("server")];
  connect(host, client, interfaces[0] ?? "", CLIENT);
  connect(host, server, interfaces[1] ?? "", SERVER);
  insideNetns(host.path, () => writeSysctl("net/ipv4/ip_forward", "1"));
  // Packets meet a change only if they are sent on another processor than the one that makes it.
  pin("0");
  return {
    host,
    async flood(milliseconds, change) {
      const result = await startFlood({
        ...{ from: client.path, by: host.path, to: server.path },
        ...{ address: SERVER, milliseconds },
      });
      const end = performance.now() + milliseconds;
      let changes = 0;
      for (; performance.now() < end; changes++) change();
      return { ...(await result()), changes };
    },
    [Symbol.dispose]() {
      pin(`0-${lastProcessor()}`);
      namespaces.sweep();
    },
  };
}

/** Before all other rules, and after them. */
const PASSAGE = `
table inet seen
delete table inet seen
table inet seen {
  counter entered {}
  counter left {}
  chain entering {
    type filter hook prerouting priority -500;
    udp dport ${OPEN} counter name entered
  }
  chain leaving {
    type filter hook postrouting priority 500;
    udp dport ${OPEN} counter name left
  }
}`;

const ARRIVALS = `
table inet seen
delete table inet seen
table inet seen {
  counter open {}
  counter shut {}
  chain arrivals {
    type filter hook prerouting priority -300;
    udp dport ${OPEN} counter name open drop
    udp dport ${CLOSED} counter name shut drop
  }
}`;

function connect(host: TestNetns, pod: TestNetns, name: string, address: string): void {
  const gateway = address.replace(/\.2$/, ".1");
  runIn(host, ["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", pod.name]);
  runIn(host, ["ip", "addr", "add", `${gateway}/24`, "dev", name]);
  runIn(host, ["ip", "link", "set", name, "up"]);
  runIn(pod, ["ip", "addr", "add", `${address}/24`, "dev", "eth0"]);
  runIn(pod, ["ip", "link", "set", "eth0", "up"]);
  runIn(pod, ["ip", "route", "add", "default", "via", gateway]);
}

function lastProcessor(): string {
  return String(navigator.hardwareConcurrency - 1);
}

/** The main thread of this process. */
function pin(list: string): void {
  Bun.spawnSync(["taskset", "-pc", list, String(process.pid)], { stdout: "ignore" });
}
