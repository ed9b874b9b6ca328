import { aborted } from "../../timers.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Call, Host, Terminal } from "../main/context.ts";
import { startEchoServer } from "./echo-server.ts";
import { parsePort } from "./port.ts";

export async function run(context: Call & Terminal & Host, { operands }: Given): Promise<ExitCode> {
  const ports = operands.map(parsePort);
  if (ports.length === 0) throw new UsageError("PORT is missing");
  const name = await context.hostName();
  const servers = ports.map((port) => startEchoServer(port, name));
  context.stderr(`Serving on port ${servers.map(({ port }) => port).join(", ")}\n`);
  await aborted(context.signal);
  await Promise.all(servers.map((server) => server.stop()));
  return EXIT_OK;
}
