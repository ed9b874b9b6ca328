/**
 * A host and a container as two private namespaces with a veth between them; calls
 * the built `bandwidth` plugin as a runtime does.
 */
import { type NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { builtProgram, type PluginRun, runPlugin } from "../support/run-plugin.ts";

export const RATES = { ingressRate: 8_000_000, ingressBurst: 800_000, egressRate: 16_000_000, egressBurst: 800_000 };

export interface Call {
  readonly cniVersion?: string;
  readonly containerId?: string;
  readonly ifname?: string;
  readonly netns?: string | undefined;
  /** Fields of the network config in addition to the common ones. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The command that runs the plugin, to be put before its name. */
  readonly under?: readonly string[];
}

/** What `tc` shows of a token bucket. */
export interface Bucket {
  readonly link: string;
  readonly rate: number;
  readonly burst: number;
}

export class ShapedPod {
  readonly host: TestNetns;
  readonly pod: TestNetns;

  constructor(area: NetnsArea) {
    this.host = area.create("host");
    this.pod = area.create("pod");
    this.addVeth("veth0", "eth0", "10.200.0");
  }

  addVeth(outside: string, inside: string, network: string): void {
    const ends = ["ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", this.pod.name];
    runIn(this.host, ends);
    for (const [netns, name, last] of [
      [this.host, outside, 1],
      [this.pod, inside, 2],
    ] as const) {
      runIn(netns, ["ip", "addr", "add", `${network}.${last}/24`, "dev", name]);
      runIn(netns, ["ip", "link", "set", name, "up"]);
    }
  }

  prevResult(cniVersion = "1.1.0", outside = "veth0", inside = "eth0") {
    const version = cniVersion < "1.0.0" ? { version: "4" } : {};
    return {
      cniVersion,
      interfaces: [{ name: outside }, { name: inside, sandbox: this.pod.path }],
      ips: [{ ...version, address: "10.200.0.2/24", interface: 1 }],
      routes: [{ dst: "0.0.0.0/0" }],
    };
  }

  call(
    command: string,
    { cniVersion = "1.1.0", containerId = "c1", ifname = "eth0", config = {}, ...more }: Call = {},
  ): Promise<PluginRun> {
    const program = ["nsenter", `--net=${this.host.path}`, "--", ...(more.under ?? []), builtProgram("bandwidth")];
    return runPlugin(program, {
      env: {
        CNI_COMMAND: command,
        CNI_CONTAINERID: containerId,
        CNI_IFNAME: ifname,
        CNI_NETNS: "netns" in more ? more.netns : this.pod.path,
        CNI_PATH: "/opt/cni/bin",
        PATH: process.env["PATH"],
      },
      stdin: { name: "net", type: "bandwidth", cniVersion, prevResult: this.prevResult(cniVersion), ...config },
    });
  }

  /** Makes a call that must succeed; returns what it printed. */
  async must(command: string, call: Call = {}) {
    const { exitCode, stdout, stderr } = await this.call(command, call);
    if (exitCode !== 0) throw new Error(`${command} failed: ${stdout}${stderr}`);
    return stdout === "" ? undefined : JSON.parse(stdout);
  }

  buckets(): readonly Bucket[] {
    const qdiscs: readonly { kind: string; dev: string; options: { rate: number; burst: number } }[] = JSON.parse(
      runIn(this.host, ["tc", "-j", "qdisc", "show"]),
    );
    return qdiscs
      .filter(({ kind }) => kind === "tbf")
      .map(({ dev, options }) => ({ link: dev, rate: options.rate * 8, burst: options.burst }));
  }

  /** The names of the links to which the link's incoming traffic is redirected. */
  redirections(link = "veth0"): string[] {
    const text = runIn(this.host, ["tc", "filter", "show", "dev", link, "ingress"]);
    return [...text.matchAll(/Egress Redirect to device (\S+)\)/g)].map(([, name = ""]) => name);
  }

  ifbs(): string[] {
    const links: readonly { ifname: string }[] = JSON.parse(
      runIn(this.host, ["ip", "-j", "link", "show", "type", "ifb"]),
    );
    return links.map(({ ifname }) => ifname).filter((name) => name !== undefined);
  }

  /** All traffic control settings and all link names: to check that nothing is left. */
  traces(): string {
    const links: readonly { ifname: string }[] = JSON.parse(runIn(this.host, ["ip", "-j", "link"]));
    return [
      runIn(this.host, ["tc", "qdisc", "show"]),
      runIn(this.host, ["tc", "filter", "show", "dev", "veth0", "ingress"]),
      links.map(({ ifname }) => ifname).join(" "),
    ].join("\n");
  }
}
