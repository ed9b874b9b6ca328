import type { Command } from "../../admin/main/command.ts";
import { loadOnce } from "../../load-once.ts";

export const consoleCommand: Command = {
  kind: "command",
  name: "console",
  summary: "Show health, flows and addresses of this host in a web browser, until Ctrl-C",
  description: [
    "Serves a web page at 127.0.0.1 alone, and prints its address. The address has a token that logs in once: open it in a browser of",
    "your choice; when the session has ended, another address is printed. A session ends half an hour after its last use, and after",
    "eight hours in any case. From another machine, forward the port: ssh -L PORT:127.0.0.1:PORT HOST, and open the same address.",
    "The page shows what this user may read: run it as root to see everything. It changes nothing, unless it is started with --write.",
    "It ends with Ctrl-C, and with the process that has started it. In a cluster, spec.console of the Installation runs a console for",
    "all users, who log in with their own tokens.",
  ].join("\n"),
  options: [
    { name: "port", value: "PORT", summary: "Where to serve the page (default: a port that is free)" },
    { name: "write", summary: "Also apply drafts of policies, if the page is asked to" },
  ],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [
    { command: "console", does: "Look at this host in a browser" },
    { command: "console --port 8480 --write", does: "Also apply drafts of policies for denied flows" },
  ],
  load: loadOnce(() => import("./console.ts")),
};
