/** Copies of the Secrets that pods of the components use, from the namespace of the operator. Pure. */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import type { EffectiveInstallation } from "../effective-installation.ts";
import type { KubeObject } from "../kube-object.ts";
import { type FollowedSnapshot, type Namespaces, objectNamed } from "./followed-objects.ts";

/** Throws for one that does not exist. */
export function copiedSecrets(
  { image, datastore }: EffectiveInstallation,
  snapshot: FollowedSnapshot,
  { operator, components }: Namespaces,
): readonly KubeObject[] {
  const ofEtcd = datastore.type === "Etcd" && datastore.secretName !== undefined ? [datastore.secretName] : [];
  return [...new Set([...image.pullSecrets, ...ofEtcd])].map((name) => {
    const secret = objectNamed(snapshot, "secrets", { namespace: operator, name });
    if (secret === undefined) {
      throw new PluginError(
        "resource-missing",
        `Secret ${quoted(name)} does not exist in namespace ${quoted(operator)}; create it there, or remove it from the Installation`,
      );
    }
    const { apiVersion, kind, type, data } = secret;
    return { apiVersion, kind, metadata: { name, namespace: components }, type, data: data ?? {} };
  });
}
