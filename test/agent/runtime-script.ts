/** Calls of a runtime to every program with every command, and their results: the same script with and without an agent. */
import { programNames } from "../../src/bin/programs.ts";
import { identity } from "../../src/identity.ts";
import type { AddResult, Json, PluginSite } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { BIN } from "./agent.ts";

const NAMES = programNames(identity);
type Plugin = Exclude<keyof typeof NAMES, "node" | "admin">;

interface Call {
  readonly plugin: Plugin;
  readonly command: string;
  /** Text is sent unchanged. */
  readonly config: Json | string;
  readonly environment?: Readonly<Record<string, string>>;
}

interface CallResult {
  readonly call: string;
  readonly exitCode: number;
  readonly stdout: string;
}

const CONTAINER = "00000000000000000000000000000001";
/** The path of a namespace that exists. */
export const NETNS_NAME = "vt-same";
const NETNS = `/run/netns/${NETNS_NAME}`;
const HOST_LOCAL = { type: "host-local", ranges: [[{ subnet: "10.88.0.0/24" }], [{ subnet: "fd88::/112" }]] };
const PORTS = { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] };
const RATES = { ingressRate: 8_000_000, ingressBurst: 800_000, egressRate: 16_000_000, egressBurst: 800_000 };
const NOBODY = { "cni.dev/valid-attachments": [] };

function environmentOf(command: string): Readonly<Record<string, string>> {
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: CONTAINER,
    CNI_NETNS: NETNS,
    CNI_IFNAME: "eth0",
    CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web",
    CNI_PATH: BIN,
  };
}

/** Runs the calls one after another, as a runtime would. */
export class Runtime {
  readonly results: CallResult[] = [];

  constructor(readonly site: PluginSite) {}

  async call({ plugin, command, config, environment }: Call): Promise<CallResult> {
    const { code, stdout } = await this.site.host.run([builtProgram(NAMES[plugin])], {
      stdin: typeof config === "string" ? config : JSON.stringify(config),
      environment: environment ?? environmentOf(command),
    });
    const result = { call: `${plugin} ${command}`, exitCode: code, stdout: withoutMacs(stdout) };
    this.results.push(result);
    return { ...result, stdout };
  }

  async add(plugin: Plugin, config: Json): Promise<AddResult> {
    const { exitCode, stdout } = await this.call({ plugin, command: "ADD", config });
    if (exitCode !== 0) throw new Error(`${plugin} ADD failed with ${exitCode}: ${stdout}`);
    return JSON.parse(stdout) as AddResult;
  }

  async all(plugin: Plugin, commands: readonly string[], config: Json): Promise<void> {
    for (const command of commands) await this.call({ plugin, command, config });
  }
}

/** All MACs but the one that we choose for every host link. */
function withoutMacs(stdout: string): string {
  return stdout.replaceAll(/"mac":"(?!ee:ee:ee:ee:ee:ee)[0-9a-f:]{17}"/g, '"mac":"by lot"');
}

/** All calls for one pod: ADD, host ports, shaping, CHECK, DEL. */
export async function playAttachment(runtime: Runtime): Promise<void> {
  const { site } = runtime;
  const config = site.config();
  const chained = (type: string, prevResult: unknown, more: Json = {}): Json => ({
    cniVersion: "1.1.0",
    name: "net",
    type,
    prevResult,
    ...more,
  });
  const attached = await runtime.add("plugin", config);
  const mapped = await runtime.add("portmap", chained("portmap", attached, { runtimeConfig: PORTS }));
  const shaped = await runtime.add("bandwidth", chained("bandwidth", mapped, RATES));
  const links = chained("bandwidth", shaped, RATES);
  const ports = chained("portmap", shaped, { runtimeConfig: PORTS });

  await runtime.all("plugin", ["CHECK", "STATUS"], { ...config, prevResult: shaped });
  await runtime.all("portmap", ["CHECK", "STATUS"], ports);
  await runtime.all("bandwidth", ["CHECK", "STATUS"], links);
  await runtime.all("bandwidth", ["DEL", "CHECK", "DEL"], links);
  await runtime.all("portmap", ["DEL", "CHECK", "DEL"], ports);
  await runtime.all("plugin", ["DEL", "CHECK", "DEL"], { ...config, prevResult: shaped });
  await runtime.all("bandwidth", ["ADD", "GC"], { ...links, ...NOBODY });
  await runtime.all("portmap", ["ADD", "GC"], { ...ports, ...NOBODY });
  await runtime.all("plugin", ["ADD", "GC"], { ...config, ...NOBODY });
}

export async function playAddresses(runtime: Runtime): Promise<void> {
  const commands = ["ADD", "CHECK", "STATUS", "DEL", "DEL", "ADD"];
  await runtime.all("ipam", commands, runtime.site.config());
  await runtime.all("ipam", ["GC", "DEL"], runtime.site.config(NOBODY));
  await runtime.all("hostLocal", commands, { cniVersion: "1.1.0", name: "net", ipam: HOST_LOCAL });
  await runtime.all("hostLocal", ["GC", "DEL"], { cniVersion: "1.1.0", name: "net", ipam: HOST_LOCAL, ...NOBODY });
  await runtime.all("plugin", ["ADD", "DEL"], runtime.site.config({ ipam: HOST_LOCAL }));
}

/** Calls that each program refuses; nothing may be left of them. */
export async function playMistakes(runtime: Runtime): Promise<void> {
  const { site } = runtime;
  const good = site.config();
  const deep = JSON.stringify(good).replace(/}$/, `,"x":${"[".repeat(50_000)}${"]".repeat(50_000)}}`);
  for (const plugin of ["plugin", "ipam", "hostLocal", "portmap", "bandwidth"] as const) {
    for (const config of ["{", deep, "[]", "null", "{}", { ...good, name: "" }, { ...good, cniVersion: "9.9.9" }]) {
      await runtime.call({ plugin, command: "ADD", config });
    }
    const { CNI_IFNAME, CNI_CONTAINERID, ...incomplete } = environmentOf("ADD");
    await runtime.call({ plugin, command: "ADD", config: good, environment: incomplete });
    for (const command of ["FROB", "add"]) await runtime.call({ plugin, command, config: good });
  }
  const nowhere = { ...environmentOf("ADD"), CNI_NETNS: "/run/netns/vt-none" };
  const own = { ...environmentOf("ADD"), CNI_NETNS: "/proc/1/ns/net" };
  for (const environment of [nowhere, own]) {
    await runtime.call({ plugin: "plugin", command: "ADD", config: good, environment });
  }
  await runtime.call({ plugin: "plugin", command: "ADD", config: { ...good, mtu: 1000 } });
  await runtime.call({ plugin: "plugin", command: "ADD", config: { ...good, ipam: { type: "no-such-plugin" } } });
  await runtime.call({ plugin: "ipam", command: "ADD", config: { ...good, ipam: { ipv4_pools: ["none"] } } });
}
