/**
 * What an installation consists of, and where each part goes. `make install`
 * and the Debian package are both made from this list. Pure.
 *
 *   <CNI folder>/vendor             the executable, once
 *   <CNI folder>/vendor-ipam …      its other names, links to it
 *   <prefix>/bin/vendorctl          links to those names
 *   <prefix>/sbin/vendor-node
 *   <prefix>/share/vendor/          example network configs: one is copied to /etc/cni/net.d to switch the network on
 *   <prefix>/share/man/             manual pages
 *   <prefix>/share/bash-completion/ … completion of the admin tool in bash, zsh and fish
 *   <prefix>/lib/systemd/system/    the unit of the node agent
 *   <configuration directory>/      settings of the admin tool, which belong to the administrator
 */
import { join } from "node:path";
import { completionScript } from "../../src/admin/completion/script.ts";
import { COMPLETION_SHELLS, type CompletionShell } from "../../src/admin/completion/shells.ts";
import { COMMANDS } from "../../src/admin/main/commands.ts";
import { programNames } from "../../src/bin/programs.ts";
import { installedListName } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import { networkListText, nodeService } from "../../src/release/host-files.ts";
import { compressed, manualPages } from "../man/pages.ts";
import { adminSettings } from "./admin-settings.ts";

export type Entry =
  | { readonly kind: "executable"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "text"; readonly path: string; readonly content: string | Uint8Array }
  /** The administrator's: installed if it does not exist, never replaced. */
  | { readonly kind: "configuration"; readonly path: string; readonly content: string };

export interface Places {
  readonly prefix: string;
  readonly cniBinDirectory: string;
}

/** All names are those of the identity: manual pages and completion are of this program. */
export function layoutOf({ prefix, cniBinDirectory }: Places): readonly Entry[] {
  const { product, adminTool, nodeAgent, configDirectory } = identity;
  const others = Object.values(programNames(identity)).filter((name) => name !== product);
  const lists = (["etcd", "embedded"] as const).map((datastore) => ({
    kind: "text" as const,
    path: join(prefix, "share", product, installedListName(datastore, identity)),
    content: networkListText(datastore, identity),
  }));
  return [
    { kind: "executable", path: join(cniBinDirectory, product) },
    ...others.map((name) => ({ kind: "link" as const, path: join(cniBinDirectory, name), target: product })),
    { kind: "link", path: join(prefix, "bin", adminTool), target: join(cniBinDirectory, adminTool) },
    { kind: "link", path: join(prefix, "sbin", nodeAgent), target: join(cniBinDirectory, nodeAgent) },
    ...lists,
    ...Object.entries(manualPages()).map(([path, text]) => ({
      kind: "text" as const,
      path: join(prefix, "share/man", `${path}.gz`),
      content: compressed(text),
    })),
    ...COMPLETION_SHELLS.map((shell) => ({
      kind: "text" as const,
      path: join(prefix, "share", completionPath(shell, { prefix, adminTool })),
      content: completionScript(shell, COMMANDS),
    })),
    {
      kind: "text",
      path: join(prefix, "lib/systemd/system", `${nodeAgent}.service`),
      content: nodeService(identity, cniBinDirectory),
    },
    { kind: "configuration", path: join(configDirectory, `${adminTool}.yaml`), content: adminSettings(identity) },
  ];
}

/** Where each shell looks by itself; Debian's zsh looks elsewhere for what packages bring. */
function completionPath(shell: CompletionShell, { prefix, adminTool }: { prefix: string; adminTool: string }): string {
  switch (shell) {
    case "bash":
      return `bash-completion/completions/${adminTool}`;
    case "zsh":
      return `zsh/${prefix === "/usr" ? "vendor-completions" : "site-functions"}/_${adminTool}`;
    case "fish":
      return `fish/vendor_completions.d/${adminTool}.fish`;
  }
}
