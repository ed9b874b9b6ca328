/**
 * `make demo CONSOLE=1`: the console of a host with live traffic, until Ctrl-C. The host is private, so the demo passes connections on from a
 * port of this machine's loopback.
 */
import { identity } from "../../src/identity.ts";
import { startHostConsole } from "../../test/support/host-console.ts";
import { relayFromNetns } from "../../test/support/tcp-relay.ts";
import { type DemoEnvironment, PLUGIN_DIRECTORY } from "./environment.ts";
import { openLiveHost } from "./live-host.ts";
import type { Output } from "./output.ts";

const PAUSE = 500;
const TOOL = `${PLUGIN_DIRECTORY}/${identity.adminTool}`;

export async function showConsole(demo: DemoEnvironment, output: Output, stop: AbortSignal): Promise<void> {
  const { live } = await output.step("Pods that talk", async () => {
    const opened = await openLiveHost(demo);
    return { live: opened, summary: '"web" to "api" and "api" to "db"; "report" may not ask "db"' };
  });
  using _live = live;
  const talking = live.talk(stop);
  await using console = await startHostConsole(demo.host, TOOL, ["--write"]);
  const { port } = new URL(console.address());
  using relay = await relayFromNetns(demo.host.netns, { host: "127.0.0.1", port: Number(port) });
  const here = () => console.address().replace(`:${port}/`, `:${relay.port}/`);
  output.end(
    [
      `Open this address once in a browser (from another machine: ssh -L ${relay.port}:127.0.0.1:${relay.port} and the same address):`,
      ...["", `  ${here()}`, ""],
      'Flows shows that "report" is denied at "db": open it, draft a policy, apply it, and see it allowed. Ctrl-C ends the demo.',
    ].join("\n"),
  );
  await announce(here, stop);
  await talking;
}

/** Each address logs in once: prints the next one. */
async function announce(address: () => string, stop: AbortSignal): Promise<void> {
  let shown = address();
  while (!stop.aborted) {
    await Bun.sleep(PAUSE);
    if (address() === shown) continue;
    shown = address();
    console.log(`\nThat session has ended. The next address:\n\n  ${shown}\n`);
  }
}
