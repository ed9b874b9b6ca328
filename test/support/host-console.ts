/** The console of a private host, as its user starts it. */
import { readFileSync } from "node:fs";
import type { Host } from "./host.ts";
import { pollUntil } from "./poll.ts";

export interface HostConsole extends AsyncDisposable {
  /** With a token for one login: the one that was printed last. */
  address(): string;
}

let started = 0;

export async function startHostConsole(
  host: Host,
  adminTool: string,
  options: readonly string[] = [],
): Promise<HostConsole> {
  started += 1;
  const log = `console-${started}.log`;
  const child = host.start(["env", "DATASTORE_TYPE=embedded", adminTool, "console", ...options], log);
  const text = () => readFileSync(host.view(`${host.directory}/${log}`), "utf8");
  const addresses = () => text().match(/^http:\/\/\S+#token=\S+$/gm) ?? [];
  await pollUntil(() => {
    if (child.exitCode !== null) throw new Error(`The console has ended: ${text()}`);
    return addresses().length > 0;
  }, "the address of the console");
  return {
    address: () => addresses().at(-1) ?? "",
    async [Symbol.asyncDispose]() {
      // Its starter: it ends with it.
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
