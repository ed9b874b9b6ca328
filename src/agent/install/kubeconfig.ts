/** The kubeconfig that the plugin uses: complete in itself, so that it can be replaced as a whole. Pure. */
import { identity } from "../../identity.ts";

export interface PluginAccess {
  readonly server: string;
  /** PEM certificates. */
  readonly authority: string;
  readonly token: string;
}

export function pluginKubeconfig({ server, authority, token }: PluginAccess): string {
  const name = identity.product;
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority-data": toBase64(authority) } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
  // JSON is YAML.
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}
