/** Asks a TCP server from one of several addresses of a network namespace, with curl. */
import type { Host } from "./host.ts";
import type { Reply } from "./namespace-sockets.ts";
import { patience } from "./proof-size.ts";

interface Question {
  /** The name of the namespace on the host. */
  readonly netns: string;
  readonly source: string;
  readonly target: string;
  readonly port: number;
}

const TIMED_OUT = 28;
const TRIES = 10;

/** What the server replies, HTTP or plain text, or `silence`. */
export async function askFromAddress(host: Host, { netns, source, target, port }: Question): Promise<Reply> {
  const options = ["--silent", "--http0.9", "--max-time", String(patience), "--interface", source];
  for (let tries = 0; tries < TRIES; tries += 1) {
    const command = ["ip", "netns", "exec", netns, "curl", ...options, `http://${target}:${port}/`];
    const { code, stdout } = await host.run(command);
    if (code === 0) return stdout.trim();
    if (code === TIMED_OUT) return "silence";
    // A server that closes without reading the request resets the connection, sometimes before its reply is read.
  }
  return "broken";
}
