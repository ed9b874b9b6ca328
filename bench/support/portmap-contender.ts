/** portmap plugins as contenders: host ports of made-up pods, mapped and taken away. */
import { runCommand } from "./command.ts";
import type { Contender, Cost } from "./contest.ts";
import type { Served } from "./node-agent.ts";
import { someAtOnce } from "./some-at-once.ts";

export interface PortmapRival extends Served {
  readonly name: string;
  readonly program: string;
  readonly backend?: "iptables" | "nftables";
  /** Where upstream finds its `iptables`. */
  readonly path?: string;
  /** Where it runs: entering costs, so only rivals that all enter compare. */
  readonly netns?: string;
}

const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

function callPortmap(rival: PortmapRival, command: "ADD" | "DEL", number: number, ports = 1) {
  const portMappings = Array.from({ length: ports }, (_, index) => ({
    hostPort: 10_000 + number * ports + index,
    containerPort: 80 + index,
    protocol: "tcp",
  }));
  const config = {
    cniVersion: "1.0.0",
    name: "bench",
    type: "portmap",
    snat: true,
    ...(rival.backend === undefined ? {} : { backend: rival.backend }),
    runtimeConfig: { portMappings },
    prevResult: {
      cniVersion: "1.0.0",
      interfaces: [{ name: "pods" }, { name: "eth0", sandbox: "/run/netns/vt-bench-0" }],
      ips: [{ address: `10.9.${number >> 7}.${2 + (number & 127)}/16`, interface: 1 }],
      dns: {},
    },
  };
  return runCommand({
    command: [...(rival.netns === undefined ? [] : ["nsenter", `--net=/run/netns/${rival.netns}`]), rival.program],
    stdin: JSON.stringify(config),
    environment: {
      PATH: rival.path ?? PATH,
      CNI_COMMAND: command,
      CNI_CONTAINERID: new Bun.CryptoHasher("sha256").update(`${number}`).digest("hex"),
      CNI_NETNS: "/run/netns/vt-bench-0",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/nowhere",
      ...rival.agent?.environment,
    },
  });
}

/** One command timed, the other one done untimed around it. */
export function portmapContender(rival: PortmapRival, command: "ADD" | "DEL", concurrency = 1): Contender {
  const all = async (which: "ADD" | "DEL") => {
    for (let place = 0; place < concurrency; place++) await callPortmap(rival, which, place);
  };
  return {
    name: rival.name,
    meter: rival.agent?.meter,
    ...(command === "DEL" ? { before: () => all("ADD") } : {}),
    run: (_turn, place) => callPortmap(rival, command, place),
    ...(command === "ADD" ? { after: () => all("DEL") } : {}),
  };
}

/** Removes this many pods, some at once, as a node that is being drained does. */
export function drainContender(rival: PortmapRival, pods: number, atOnce: number): Contender {
  const forAll = async (command: "ADD" | "DEL"): Promise<Cost> => {
    let cpuMilliseconds = 0;
    await someAtOnce(pods, atOnce, async (number) => {
      const cost = await callPortmap(rival, command, number, 3);
      cpuMilliseconds += cost.cpuMilliseconds;
    });
    return { cpuMilliseconds };
  };
  return {
    name: rival.name,
    meter: rival.agent?.meter,
    before: async () => void (await forAll("ADD")),
    run: () => forAll("DEL"),
  };
}
