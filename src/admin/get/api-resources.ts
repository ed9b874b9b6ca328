import { aliasesOf } from "../kinds/aliases.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { EXIT_OK, type ExitCode, type Given } from "../main/command.ts";
import type { Call, Terminal } from "../main/context.ts";
import { type Page, stdoutPage } from "../terminal/page.ts";
import { TableWriter } from "../terminal/table.ts";

export async function run(context: Call & Terminal, given: Given): Promise<ExitCode> {
  context.stdout(format(given, stdoutPage(context)));
  return EXIT_OK;
}

function format(given: Given, page: Page): string {
  const output = given.values.get("output");
  if (output === "json") return `${JSON.stringify({ resources: ADMIN_KINDS.map(describe) }, undefined, 2)}\n`;
  if (output === "name") return ADMIN_KINDS.map(({ plural, codec }) => `${plural}.${codec.api.group}\n`).join("");
  const table = new TableWriter(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"], {
    hasHeader: !given.switches.has("no-headers"),
    page,
  });
  return table.write(
    ADMIN_KINDS.map(describe).map(({ name, shortNames, apiVersion, namespaced, kind }) => [
      name,
      shortNames.join(","),
      apiVersion,
      `${namespaced}`,
      kind,
    ]),
  );
}

function describe({ kind, plural, shortNames, namespaced, codec }: AdminKind) {
  return {
    name: plural,
    shortNames: [...shortNames, ...aliasesOf({ kind })],
    apiVersion: codec.apiVersion,
    namespaced,
    kind,
  };
}
