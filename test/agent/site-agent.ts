/** A node agent for an IPAM site: it serves every call with the site's environment. */
import { readFileSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { countRequests, DYING_WITH_PARENT } from "../support/etcd.ts";
import { type IpamSite, PLUGIN } from "../support/ipam-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram, type PluginRun, runPlugin } from "../support/run-plugin.ts";

export interface SiteAgent extends AsyncDisposable {
  /** How many calls it has served. */
  served(): number;
}

const RUN_DIRECTORY = `${identity.environmentPrefix}RUN_DIRECTORY`;
/** With it a process does its call itself, although an agent runs. */
const ALONE = { [`${identity.environmentPrefix}TRACE`]: "1" };

export async function startSiteAgent(site: IpamSite): Promise<SiteAgent> {
  const path = `${site.environment[RUN_DIRECTORY]}.agent.log`;
  const log = Bun.file(path);
  const command = [...DYING_WITH_PARENT, builtProgram(identity.nodeAgent)];
  const child = Bun.spawn(command, { env: { ...site.environment }, stdin: "ignore", stdout: "ignore", stderr: log });
  const read = () => readFileSync(path, "utf8");
  await pollUntil(() => read().includes("serves the plugins' calls"), "the agent to serve");
  return {
    served: () => [...read().matchAll(/exit code \d+/g)].length,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

export interface IpamCall {
  readonly command: "ADD" | "DEL" | "CHECK" | "STATUS";
  readonly container: string;
  /** Fields of `ipam` in the network config. */
  readonly ipam?: Readonly<Record<string, unknown>>;
  readonly args?: string;
  readonly by?: "the agent, if there is one" | "its own process";
}

export function callIpam(site: IpamSite, { command, container, ipam, args, by }: IpamCall): Promise<PluginRun> {
  return runPlugin(PLUGIN, {
    env: {
      ...site.environment,
      ...(by === "its own process" ? ALONE : {}),
      CNI_COMMAND: command,
      CNI_CONTAINERID: container,
      CNI_IFNAME: "eth0",
      CNI_ARGS: args,
    },
    stdin: { ...site.config, ipam: { type: identity.ipamType, ...ipam } },
  });
}

/** The address in the result of a successful ADD, without its prefix length. */
export function addressOf({ exitCode, stdout, stderr }: PluginRun): string {
  if (exitCode !== 0) throw new Error(`ADD failed: ${stdout}${stderr}`);
  const { ips } = JSON.parse(stdout) as { readonly ips: readonly { readonly address: string }[] };
  return ips[0]?.address.split("/")[0] ?? "none";
}

/** The result of the work, and how many requests etcd counted meanwhile. */
export async function counted<Outcome>(
  site: IpamSite,
  work: () => Promise<Outcome>,
): Promise<{ readonly outcome: Outcome; readonly requests: number }> {
  const total = async () =>
    Object.values(await countRequests(site.endpoint ?? "")).reduce((sum, count) => sum + count, 0);
  const before = await total();
  const outcome = await work();
  return { outcome, requests: (await total()) - before };
}
