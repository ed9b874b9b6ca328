/** portmap plugins as candidates: host ports of simulated pods are mapped and removed. */
import { runCommand } from "./command-candidate.ts";
import type { Candidate, Cost } from "./comparison.ts";
import type { Served } from "./node-agent.ts";
import { runConcurrently } from "./run-concurrently.ts";

export interface MeasuredPortmap extends Served {
  readonly name: string;
  readonly program: string;
  readonly backend?: "iptables" | "nftables";
  /** The PATH where upstream's plugin finds `iptables`. */
  readonly path?: string;
  /** Where it runs. Entering it takes time, so all compared implementations must do the same. */
  readonly netns?: string;
}

const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

function callPortmap(implementation: MeasuredPortmap, command: "ADD" | "DEL", number: number, ports = 1) {
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
    ...(implementation.backend === undefined ? {} : { backend: implementation.backend }),
    runtimeConfig: { portMappings },
    prevResult: {
      cniVersion: "1.0.0",
      interfaces: [{ name: "pods" }, { name: "eth0", sandbox: "/run/netns/vt-bench-0" }],
      ips: [{ address: `10.9.${number >> 7}.${2 + (number & 127)}/16`, interface: 1 }],
      dns: {},
    },
  };
  return runCommand({
    command: [
      ...(implementation.netns === undefined ? [] : ["nsenter", `--net=/run/netns/${implementation.netns}`]),
      implementation.program,
    ],
    stdin: JSON.stringify(config),
    environment: {
      PATH: implementation.path ?? PATH,
      CNI_COMMAND: command,
      CNI_CONTAINERID: new Bun.CryptoHasher("sha256").update(`${number}`).digest("hex"),
      CNI_NETNS: "/run/netns/vt-bench-0",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/nowhere",
      ...implementation.agent?.environment,
    },
  });
}

/** One command is timed, the other runs before or after, not timed. */
export function portmapCandidate(implementation: MeasuredPortmap, command: "ADD" | "DEL", concurrency = 1): Candidate {
  const all = async (which: "ADD" | "DEL") => {
    for (let place = 0; place < concurrency; place++) await callPortmap(implementation, which, place);
  };
  return {
    name: implementation.name,
    meter: implementation.agent?.meter,
    ...(command === "DEL" ? { before: () => all("ADD") } : {}),
    run: (_turn, place) => callPortmap(implementation, command, place),
    ...(command === "ADD" ? { after: () => all("DEL") } : {}),
  };
}

/** Removes this many pods, some concurrently, as when a node is drained. */
export function drainCandidate(implementation: MeasuredPortmap, pods: number, atOnce: number): Candidate {
  const forAll = async (command: "ADD" | "DEL"): Promise<Cost> => {
    let cpuMilliseconds = 0;
    await runConcurrently(pods, atOnce, async (number) => {
      const cost = await callPortmap(implementation, command, number, 3);
      cpuMilliseconds += cost.cpuMilliseconds;
    });
    return { cpuMilliseconds };
  };
  return {
    name: implementation.name,
    meter: implementation.agent?.meter,
    before: async () => void (await forAll("ADD")),
    run: () => forAll("DEL"),
  };
}
