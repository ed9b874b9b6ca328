/** Prints the table of invalid inputs with the admin tool's error messages, as Markdown. */
import { checkNetworkFile } from "../src/admin/config/check-network-file.ts";
import { BAD_INPUTS } from "../test/support/bad-inputs.ts";
import { configHost } from "../test/support/config-host.ts";

console.log("| # | Input | Position | Message |\n|---|---|---|---|");
for (const [index, { wrong, text }] of BAD_INPUTS.entries()) {
  const { findings } = await checkNetworkFile(text, { host: configHost() });
  const error = findings.find(({ severity }) => severity === "error");
  console.log(`| ${index + 1} | ${wrong} | ${error?.line}:${error?.column} | ${error?.message} |`);
}
