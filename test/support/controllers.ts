/** The real controllers, as a process, against a real API server. */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { DYING_WITH_PARENT } from "./etcd.ts";
import { pollUntil } from "./poll.ts";

const PROGRAM = join(import.meta.dir, "../../dist/bin", identity.controllers);

export interface Controllers {
  readonly pid: number;
  /** What it has logged so far. */
  log(): string;
  /** Waits until the log contains the text. */
  untilLogged(text: string): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Ends it; returns its exit code. */
  kill(signal?: NodeJS.Signals): Promise<number>;
}

/** `enter`: prefix of the command, for a network namespace of its own. */
export function startControllers(
  environment: Readonly<Record<string, string>>,
  enter: readonly string[] = [],
): Controllers {
  const child = Bun.spawn([...DYING_WITH_PARENT, ...enter, PROGRAM], {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of child.stderr) text += decoder.decode(bytes, { stream: true });
  })();
  return {
    pid: child.pid,
    log: () => text,
    untilLogged: (wanted) =>
      pollUntil(() => text.includes(wanted), `the controllers to log "${wanted}"; so far:\n${text}`),
    signal: (name) => child.kill(name),
    async kill(signal = "SIGKILL") {
      child.kill(signal);
      const code = await child.exited;
      await reading;
      return code;
    },
  };
}
