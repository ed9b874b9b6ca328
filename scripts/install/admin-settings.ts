/** The admin tool's settings file as it is installed: nothing set, every setting shown. Pure. */
import { DATASTORE_SETTINGS } from "../../src/admin/datastore/options.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../src/config/installed-network-list.ts";
import type { Identity } from "../../src/identity.ts";

export function adminSettings({ adminTool, product }: Identity): string {
  const settings = DATASTORE_SETTINGS.filter(({ isFileOnly }) => !isFileOnly).map(
    ({ field, option }) => `# ${field}: ${option.value ?? ""}   # ${option.summary}`,
  );
  return `# Settings of ${adminTool}. Options and environment variables take precedence over this file.
# If nothing is set, ${adminTool} uses the datastore of the network config in ${NETWORK_CONFIG_DIRECTORY} that runs the plugin "${product}".
${settings.join("\n")}
`;
}
