/**
 * Three hosts in one network, each with a pod and with BIRD, which the keeper of the node agent runs.
 *
 *   pod 10.244.1.5 ─ host 1 (10.0.0.1, fd00::1) ═╦═ host 2 ─ pod 10.244.2.5
 *                                                ╚═ host 3 ─ pod 10.244.3.5
 */
import { readFileSync, renameSync } from "node:fs";
import type { WantedBgp } from "../../src/agent/bgp/bird-keeper.ts";
import type { BgpPlan, BgpSession } from "../../src/routing/bgp/plan.ts";
import { readSessions, type SessionStatus } from "../../src/routing/bird/sessions-status.ts";
import { bgpPlan, bgpSession, prefixes } from "../support/bgp-plan.ts";
import { type Host, openHost } from "../support/host.ts";
import { type HostDaemon, startHostDaemon } from "../support/host-daemon.ts";
import { address } from "../support/ip.ts";
import { pollUntil } from "../support/poll.ts";
import { birdRoutes } from "./bird-routes.ts";
import { writePlan } from "./planned-bgp.ts";

const NUMBERS = [1, 2, 3] as const;
const KEEPER = `${import.meta.dir}/bird-keeper.process.ts`;
const DIRECTORY = "/run/bird-test";

export interface BirdHost {
  readonly number: number;
  readonly host: Host;
  readonly keeper: HostDaemon;
  /** Replaces what the keeper wants. */
  want(wanted: WantedBgp): void;
  /** Commands of BIRD's control socket. */
  ask(command: string): Promise<string>;
  sessions(): Promise<readonly SessionStatus[]>;
  /** The routes of the kernel that BIRD wrote, both families. */
  learned(): Promise<string>;
  birdPid(): number;
  killBird(): void;
}

export interface BirdSite extends AsyncDisposable {
  readonly hosts: readonly [BirdHost, BirdHost, BirdHost];
}

export async function openBirdSite(): Promise<BirdSite> {
  const [first, second, third] = await Promise.all([openHost(), openHost(), openHost()]);
  const all = [first, second, third];
  await connect(first, [second, third]);
  const ready = await Promise.all(NUMBERS.map((number) => prepare(all[number - 1] ?? first, number)));
  const [one, two, three] = ready;
  if (one === undefined || two === undefined || three === undefined) throw new Error("no hosts");
  return {
    hosts: [one, two, three],
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((host) => host[Symbol.asyncDispose]()));
    },
  };
}

/** The plan of a node of the full mesh, without its sessions if `more` has others. */
export function meshPlan(number: number, more: Partial<BgpPlan> = {}, ofSession: Partial<BgpSession> = {}): BgpPlan {
  const others = NUMBERS.filter((each) => each !== number);
  const sessions = others.flatMap((other) =>
    (["10.0.0.", "fd00::"] as const).map((start) =>
      bgpSession(`${start}${other}`, { source: address(`${start}${number}`), passive: number < other, ...ofSession }),
    ),
  );
  return bgpPlan(`10.0.0.${number}`, {
    announced: prefixes(`10.244.${number}.0/26`, `fd10:${number}::/122`),
    exported: prefixes("10.244.0.0/16", "fd10::/16"),
    accepted: prefixes("10.244.0.0/16", "fd10::/16"),
    sessions,
    ...more,
  });
}

export async function established(host: BirdHost, count: number): Promise<void> {
  await pollUntil(async () => {
    const sessions = await host.sessions();
    return sessions.filter(({ info }) => info === "Established").length === count;
  }, `${count} sessions of host ${host.number}`);
}

/** A bridge in the first host, named like the interface of the others. */
async function connect(first: Host, others: readonly Host[]): Promise<void> {
  await first.must(["ip", "link", "add", "eth0", "type", "bridge"]);
  await first.must(["ip", "link", "set", "eth0", "up"]);
  for (const [index, host] of others.entries()) {
    const pid = /\d+/.exec(host.netns)?.[0] ?? "";
    const veth = ["link", "add", `port${index}`, "type", "veth", "peer", "name", "eth0", "netns", pid];
    await outside(["nsenter", `--net=${first.netns}`, "ip", ...veth]);
    await first.must(["ip", "link", "set", `port${index}`, "master", "eth0", "up"]);
  }
}

async function prepare(host: Host, number: number): Promise<BirdHost> {
  const script = `set -e
    ip addr add 10.0.0.${number}/24 dev eth0; ip -6 addr add fd00::${number}/64 dev eth0 nodad; ip link set eth0 up
    ip netns add pod; ip link add pod0 type veth peer name eth0 netns pod; ip link set pod0 up
    ip addr add 169.254.1.1/32 dev pod0; ip -6 addr add fe80::1/64 dev pod0 nodad
    ip -n pod link set lo up; ip -n pod link set eth0 up
    ip -n pod addr add 10.244.${number}.5/32 dev eth0; ip -n pod -6 addr add fd10:${number}::5/128 dev eth0 nodad
    ip -n pod route add 169.254.1.1 dev eth0; ip -n pod route add default via 169.254.1.1
    ip -n pod -6 route add default via fe80::1 dev eth0
    ip route add 10.244.${number}.5/32 dev pod0 proto 86; ip route add blackhole 10.244.${number}.0/26 proto 86
    ip -6 route add fd10:${number}::5/128 dev pod0 proto 86; ip -6 route add blackhole fd10:${number}::/122 proto 86
    mkdir -p ${DIRECTORY}`;
  await host.must(["sh", "-c", script]);
  const plan = `${DIRECTORY}/plan.json`;
  const want = (wanted: WantedBgp) => {
    host.writeFile(`${plan}.new`, writePlan(wanted));
    renameSync(host.view(`${plan}.new`), host.view(plan));
  };
  want({ plan: meshPlan(number) });
  const keeper = startHostDaemon(host, "keeper", [process.execPath, KEEPER, DIRECTORY]);
  const ask = (command: string) => host.must(["birdc", "-s", `${DIRECTORY}/bird/bird.ctl`, ...command.split(" ")]);
  const birdPid = () => Number(readFileSync(host.view(`${DIRECTORY}/bird/bird.pid`), "utf8"));
  return {
    ...{ number, host, keeper, want, ask, birdPid },
    sessions: async () => readSessions((await ask("show protocols all")).split("\n")),
    learned: () => birdRoutes(host),
    killBird: () => void Bun.spawnSync([...host.enter, "kill", "-9", String(birdPid())]),
  };
}

async function outside(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { stderr: "pipe" });
  if ((await child.exited) !== 0) throw new Error(`"${command.join(" ")}": ${await new Response(child.stderr).text()}`);
}

/** Sends a packet every 10 ms from the pod of a host, until it is stopped: that returns how many were lost. */
export function steadyPing({ host }: BirdHost, to: string): { stop(): Promise<number> } {
  const command = ["ip", "netns", "exec", "pod", "ping", "-n", "-q", "-i", "0.01", "-W", "1", to];
  const child = Bun.spawn([...host.enter, ...command], { stdout: "pipe" });
  return {
    async stop() {
      const pid = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
      process.kill(Number(pid), "SIGINT");
      const text = await new Response(child.stdout).text();
      const [, sent, received] = /(\d+) packets transmitted, (\d+) received/.exec(text) ?? [];
      if (received === undefined || Number(sent) === 0) throw new Error(`nothing was sent: ${text}`);
      return Number(sent) - Number(received);
    },
  };
}
