/** `console`: serves the console of this host until it is stopped. */
import { withDatastore } from "../../admin/datastore/open.ts";
import { type ExitCode, type Given, UsageError, wantsJson } from "../../admin/main/command.ts";
import type { Context } from "../../admin/main/context.ts";
import { quoted } from "../../quote.ts";
import { loadPage } from "../page-bundle.ts";
import { openHostSource } from "../source/host-source.ts";
import { serveHost } from "./serve-host.ts";

export async function run(context: Context, given: Given): Promise<ExitCode> {
  const console = { port: portOf(given), writable: given.switches.has("write"), asJson: wantsJson(given) };
  return withDatastore(context, given, async (store, { kind }) =>
    serveHost(context, {
      ...console,
      page: await loadPage(),
      openSource: () => openHostSource(context, { given, store, isEmbedded: kind === "embedded" }),
    }),
  );
}

/** 0: one that is free. */
function portOf({ values }: Given): number {
  const text = values.get("port");
  if (text === undefined) return 0;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new UsageError(`--port: ${quoted(text)} is not a port; use a number from 1 to 65535`);
}
