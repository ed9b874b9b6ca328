import { EXIT_OK, type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Call, Clock, Files, Host, Terminal } from "../main/context.ts";
import { startEchoServer } from "./echo-server.ts";
import { parsePort } from "./port.ts";
import { decodeProbes, type Probe, probeKey, type Round } from "./probe.ts";
import { type ProbeOptions, runProbe } from "./run-probe.ts";

const PAUSE_MILLISECONDS = 200;
const TIMEOUT_MILLISECONDS = 2_000;

export async function run(
  context: Call & Terminal & Files & Host & Clock,
  { operands, values }: Given,
): Promise<ExitCode> {
  const probes = decodeProbes(operands[0] ?? "");
  if (probes === undefined || operands.length !== 1) throw new UsageError("PROBES is not a JSON list of probes");
  const options = {
    timeoutMilliseconds: TIMEOUT_MILLISECONDS,
    resolverConfig: await context.readFile("/etc/resolv.conf").catch(() => ""),
  };
  const port = values.get("listen");
  const server = port === undefined ? undefined : startEchoServer(parsePort(port), await context.hostName());
  try {
    await tryInRounds(probes, options, context);
  } finally {
    await server?.stop();
  }
  return EXIT_OK;
}

async function tryInRounds(
  probes: readonly Probe[],
  options: ProbeOptions,
  context: Call & Terminal & Clock,
): Promise<void> {
  for (let number = 1; !context.signal.aborted; number += 1) {
    const tried = probes.map(async (probe) => [probeKey(probe), await runProbe(probe, options)] as const);
    const round: Round = { round: number, results: Object.fromEntries(await Promise.all(tried)) };
    context.stdout(`${JSON.stringify(round)}\n`);
    await context.wait(PAUSE_MILLISECONDS);
  }
}
