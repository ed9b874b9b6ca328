/** host-local programs, ours and upstream's, with a data directory of a test. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { partIfBuilt } from "../parts/build.ts";
import { builtProgram, type PluginRun, runPlugin } from "./run-plugin.ts";

export const OURS = builtProgram("host-local");
const DEBIAN = "/usr/lib/cni/host-local";

/** Upstream's programs that are available: Debian's 1.1.1, and 1.9.1 if it is built. */
export function upstreamPrograms(): readonly (readonly [string, string])[] {
  const newest = partIfBuilt("cni-plugins");
  const programs: (readonly [string, string])[] = [["Debian's 1.1.1", DEBIAN]];
  if ("path" in newest) programs.push(["1.9.1", join(newest.path, "host-local")]);
  return programs.filter(([, path]) => existsSync(path));
}

export interface HostLocalCall {
  readonly program: string;
  readonly command: "ADD" | "DEL" | "CHECK" | "GC" | "STATUS";
  readonly dataDir: string;
  readonly containerId?: string;
  readonly ifname?: string;
  readonly args?: string;
  readonly cniVersion?: string;
  readonly ipam?: object;
  /** More of the config. */
  readonly config?: object;
}

export function callHostLocal(call: HostLocalCall): Promise<PluginRun> {
  return runPlugin(call.program, { env: environmentOf(call), stdin: configOf(call) });
}

export function environmentOf(call: HostLocalCall): Record<string, string> {
  const { command, containerId = "c1", ifname = "eth0", args = "" } = call;
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: containerId,
    CNI_NETNS: "/some/where",
    CNI_IFNAME: ifname,
    CNI_PATH: "/some/where",
    CNI_ARGS: args,
  };
}

export function configOf({ dataDir, cniVersion = "1.0.0", ipam = {}, config = {} }: HostLocalCall): object {
  return { cniVersion, name: "mynet", type: "some", ipam: { type: "host-local", dataDir, ...ipam }, ...config };
}

/** The files that both programs use: everything but the lock and the index. */
export function filesOf(dataDir: string): Readonly<Record<string, string>> {
  const folder = join(dataDir, "mynet");
  if (!existsSync(folder)) return {};
  return Object.fromEntries(
    readdirSync(folder)
      .filter((name) => name !== "lock" && name !== ".index")
      .toSorted()
      .map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
}
