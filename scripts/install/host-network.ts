/** Before `make uninstall` removes the files from this host: removes the network by the installed program, and stops the agent. */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { EXIT_IN_USE, KEEP_FILES, UNINSTALL } from "../../src/bin/node-arguments.ts";
import type { Identity } from "../../src/identity.ts";
import { run } from "../run.ts";
import { Refused } from "./install.ts";
import type { InstallationRecord } from "./record.ts";

/**
 * Fails, and leaves everything as it is, if a container uses the network; with `force` the network stays then. The network
 * of another installation, whose unit systemd has loaded, stays. Returns what a person should know.
 */
export async function removeHostNetwork(
  record: InstallationRecord,
  { names, force }: { readonly names: Identity; readonly force: boolean },
): Promise<readonly string[]> {
  const { nodeAgent, stateDirectory, logDirectory } = names;
  const path = record.entries.find((entry) => basename(entry.path) === nodeAgent)?.path;
  const program = path === undefined ? undefined : join("/", path);
  if (program === undefined || !existsSync(program)) return [`${nodeAgent} is not there: nftables tables may be left`];
  const unit = await loadedUnit(nodeAgent);
  if (unit !== "" && !record.entries.some((entry) => join("/", entry.path) === unit))
    return [`the network and its agent are left: they are of another installation, whose unit is ${unit}`];

  const notes = await stopNetwork({ program, nodeAgent, force });
  await systemctl(nodeAgent, "--quiet", "disable");
  const left = [stateDirectory, logDirectory].filter((directory) => existsSync(directory));
  return [...notes, ...left.map((directory) => `${directory} is left`)];
}

interface Stopping {
  readonly program: string;
  readonly nodeAgent: string;
  readonly force: boolean;
}

/** A running agent is stopped only if no container is named while it runs. */
async function stopNetwork({ program, nodeAgent, force }: Stopping): Promise<readonly string[]> {
  const removal = [program, UNINSTALL, KEEP_FILES];
  const first = await run(removal);
  if (first.code === 0) return [first.output];
  const isActive = (await systemctl(nodeAgent, "--quiet", "is-active")).code === 0;
  const isForced = (code: number) => code === EXIT_IN_USE && force;
  if (!isActive && isForced(first.code)) return [first.output];
  if (!isActive || (first.code === EXIT_IN_USE && !force)) throw refusal(first);

  await systemctl(nodeAgent, "stop");
  const second = await run(removal);
  if (second.code === 0 || isForced(second.code)) return [second.output];
  await systemctl(nodeAgent, "start");
  throw refusal(second);
}

function refusal({ code, output }: { readonly code: number; readonly output: string }): Refused {
  if (code !== EXIT_IN_USE) return new Refused(output);
  return new Refused(`${output}; FORCE=1 uninstalls nevertheless, and leaves nftables tables, routes and tunnels`);
}

/** The file of the agent's unit; "" if there is none, or no systemd. */
async function loadedUnit(nodeAgent: string): Promise<string> {
  const { output } = await systemctl(nodeAgent, "show", "--property=FragmentPath", "--value");
  // In a chroot it says that it ignores the command, and succeeds.
  return /^\/.*$/.exec(output)?.[0] ?? "";
}

async function systemctl(nodeAgent: string, ...args: readonly string[]) {
  if (!existsSync("/run/systemd/system")) return { code: 1, output: "" };
  return run(["systemctl", ...args, `${nodeAgent}.service`]);
}
