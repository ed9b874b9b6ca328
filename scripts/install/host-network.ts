/** Before `make uninstall` removes the files from this host: stops the agent, and removes the network by the installed program. */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { KEEP_FILES, UNINSTALL } from "../../src/bin/node-arguments.ts";
import type { Identity } from "../../src/identity.ts";
import { run } from "../run.ts";
import { Refused } from "./install.ts";
import type { InstallationRecord } from "./record.ts";

/** Fails, and leaves everything as it is, if a container uses the network; with `force` the network stays then. Returns what a person should know. */
export async function removeHostNetwork(
  record: InstallationRecord,
  { names, force }: { readonly names: Identity; readonly force: boolean },
): Promise<readonly string[]> {
  const { nodeAgent, stateDirectory, logDirectory } = names;
  const path = record.entries.find((entry) => basename(entry.path) === nodeAgent)?.path;
  const program = path === undefined ? undefined : join("/", path);
  if (program === undefined || !existsSync(program)) return [`${nodeAgent} is not there: nftables tables may be left`];
  const agent = await stopAgent(nodeAgent);
  const { code, output } = await run([program, UNINSTALL, KEEP_FILES]);
  if (code !== 0 && !force) {
    await agent.startAgain();
    throw new Refused(`${output}; FORCE=1 uninstalls nevertheless, and leaves nftables tables, routes and tunnels`);
  }
  await agent.disable();
  const left = [stateDirectory, logDirectory].filter((directory) => existsSync(directory));
  return [output, ...left.map((directory) => `${directory} is left`)];
}

async function stopAgent(nodeAgent: string) {
  const systemctl = async (...args: readonly string[]) =>
    existsSync("/run/systemd/system") ? (await run(["systemctl", ...args, `${nodeAgent}.service`])).code : 1;
  const wasActive = (await systemctl("--quiet", "is-active")) === 0;
  if (wasActive) await systemctl("stop");
  return {
    startAgain: async () => void (wasActive && (await systemctl("start"))),
    disable: async () => void (await systemctl("--quiet", "disable")),
  };
}
