import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { ExitCode } from "../main/command.ts";

export async function run(): Promise<ExitCode> {
  throw new PluginError(
    "field-unsupported",
    `Cannot start the node agent: "${identity.adminTool} node run" is not supported`,
    {
      details: `use "systemctl enable --now ${identity.nodeAgent}" on a host, or "${identity.adminTool} install" in a cluster; "${identity.adminTool} node register" sets the addresses of the node`,
    },
  );
}
