import { type Command, type Context, EXIT_OK, UsageError } from "../main/command.ts";
import { startEchoServer } from "./echo-server.ts";
import { parsePort } from "./port.ts";
import { decodeProbes, type Probe, probeKey, type Round } from "./probe.ts";
import { type ProbeOptions, runProbe } from "./run-probe.ts";

const PAUSE_MILLISECONDS = 200;
const TIMEOUT_MILLISECONDS = 2_000;

/** Runs in the pods of `connectivity test`. */
export const connectivityProbe: Command = {
  kind: "command",
  name: "probe",
  isHidden: true,
  summary: "Try the probes of the connectivity test in rounds until it is stopped; prints one JSON object per round",
  operands: "PROBES",
  options: [{ name: "listen", value: "PORT", summary: "Serve echo requests on this port at the same time" }],
  examples: [
    {
      command: `connectivity probe '[{"kind":"connect","host":"10.96.0.1","port":443}]'`,
      does: "Does the API server accept connections from here?",
    },
  ],
  async run(context, { operands, values }) {
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
  },
};

async function tryInRounds(probes: readonly Probe[], options: ProbeOptions, context: Context): Promise<void> {
  for (let number = 1; !context.signal.aborted; number += 1) {
    const tried = probes.map(async (probe) => [probeKey(probe), await runProbe(probe, options)] as const);
    const round: Round = { round: number, results: Object.fromEntries(await Promise.all(tried)) };
    context.stdout(`${JSON.stringify(round)}\n`);
    await context.wait(PAUSE_MILLISECONDS);
  }
}
