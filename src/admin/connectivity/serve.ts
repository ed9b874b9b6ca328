import { type Command, EXIT_OK, UsageError } from "../main/command.ts";
import { startEchoServer } from "./echo-server.ts";
import { parsePort } from "./port.ts";

/** Runs in the pods of `connectivity test`. */
export const connectivityServe: Command = {
  kind: "command",
  name: "serve",
  isHidden: true,
  summary: "Serve the echo requests of the connectivity test until it is stopped",
  operands: "PORT…",
  examples: [{ command: "connectivity serve 8080 8081", does: "Serve on two ports" }],
  async run(context, { operands }) {
    const ports = operands.map(parsePort);
    if (ports.length === 0) throw new UsageError("PORT is missing");
    const name = await context.hostName();
    const servers = ports.map((port) => startEchoServer(port, name));
    context.stderr(`Serving on port ${servers.map(({ port }) => port).join(", ")}\n`);
    await new Promise<void>((resolve) => {
      if (context.signal.aborted) resolve();
      context.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.all(servers.map((server) => server.stop()));
    return EXIT_OK;
  },
};
