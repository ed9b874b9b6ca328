import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";
import { KIND_WORDS } from "../resources/options.ts";

export const explainCommand: Command = {
  kind: "command",
  name: "explain",
  summary: "Show the fields of a kind, with their types, defaults and meaning",
  operands: "KIND[.FIELD…]",
  completes: KIND_WORDS,
  options: [{ name: "recursive", summary: "Also show the fields inside these fields, without descriptions" }],
  examples: [
    { command: "explain ippool", does: "Show the fields of a pool" },
    { command: "explain ippool.spec.ipipMode", does: "Show a field" },
    { command: "explain profile.spec --recursive", does: "Show all fields below a field" },
  ],
  load: loadOnce(() => import("./explain.ts")),
};
