/** Prints the table of bad inputs with the answers the admin tool gives them, as Markdown. */
import { checkNetworkFile } from "../src/admin/network-file.ts";
import { BAD_INPUTS } from "../test/support/bad-inputs.ts";

console.log("| # | What is wrong | Place | Answer |\n|---|---|---|---|");
for (const [index, { wrong, text }] of BAD_INPUTS.entries()) {
  const { findings } = await checkNetworkFile(text, { looksForFiles: true });
  const error = findings.find(({ severity }) => severity === "error");
  console.log(`| ${index + 1} | ${wrong} | ${error?.line}:${error?.column} | ${error?.message} |`);
}
