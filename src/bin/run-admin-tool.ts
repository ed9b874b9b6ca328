/** Runs a command of the admin tool in a process of its own: nothing of it stays in the agent's memory, and no call waits for it. */
import type { CommandOutput } from "../agent/upkeep/upkeep-part.ts";
import { identity } from "../identity.ts";
import { OWN_PROGRAM } from "../linux/own-process.ts";

/** `account`: a kubeconfig, which replaces that of the network config. */
export async function runAdminTool(
  args: readonly string[],
  signal: AbortSignal,
  account?: string,
): Promise<CommandOutput> {
  const child = Bun.spawn([OWN_PROGRAM, ...args], {
    argv0: identity.adminTool,
    env: account === undefined ? process.env : { ...process.env, KUBECONFIG: account },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stop = () => child.kill("SIGTERM");
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  signal.removeEventListener("abort", stop);
  return { exitCode, output: (exitCode === 0 ? stdout : stderr).trim().replaceAll("\n", "; ") };
}
