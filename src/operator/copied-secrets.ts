/** The Secrets that pods of the components use: copies of those in the namespace of the operator. */
import { PluginError } from "../errors.ts";
import type { KubeClient, KubeRequest } from "../kube/api.ts";
import { requireOk } from "../kube/require-ok.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import type { EffectiveInstallation, InstallationDatastore } from "../release/installation/effective-installation.ts";
import type { KubeObject } from "../release/kube-object.ts";
import { type LiveObject, listAt } from "../release/live-object.ts";
import { MANAGED_BY_TEXT } from "../release/managed-by-label.ts";
import { type FollowedSnapshot, type Namespaces, objectNamed } from "./followed-objects.ts";
import { noLongerRendered } from "./owned-objects.ts";

/** Throws for one that does not exist. */
export function copiedSecrets(
  { image, datastore }: EffectiveInstallation,
  snapshot: FollowedSnapshot,
  namespaces: Namespaces,
): readonly KubeObject[] {
  const ofEtcd = etcdSecret(snapshot, namespaces, datastore);
  const names = new Set([...image.pullSecrets, ...(ofEtcd === undefined ? [] : [ofEtcd.metadata.name])]);
  return [...names].map((name) => {
    const { apiVersion, kind, type, data } = secretNamed(snapshot, namespaces, name);
    return { apiVersion, kind, metadata: { name, namespace: namespaces.components }, type, data: data ?? {} };
  });
}

/** With the certificates of etcd; `undefined` if none is needed. Throws if it does not exist. */
export function etcdSecret(
  snapshot: FollowedSnapshot,
  namespaces: Namespaces,
  datastore: InstallationDatastore,
): LiveObject | undefined {
  if (datastore.type !== "Etcd" || datastore.secretName === undefined) return undefined;
  return secretNamed(snapshot, namespaces, datastore.secretName);
}

function secretNamed(snapshot: FollowedSnapshot, { operator: namespace }: Namespaces, name: string): LiveObject {
  const secret = objectNamed(snapshot, "secrets", { namespace, name });
  if (secret !== undefined) return secret;
  throw new PluginError(
    "resource-missing",
    `Secret ${quoted(name)} does not exist in namespace ${quoted(namespace)}; create it there, or remove it from the Installation`,
  );
}

/** Copies that are no longer needed. Asks the API only if that may have changed: Secrets are not followed there. */
export class FormerSecrets {
  private lastNames: string | undefined;

  constructor(private readonly client: Pick<KubeClient, "request">) {}

  async find(needed: readonly KubeObject[], { components }: Namespaces): Promise<readonly LiveObject[]> {
    const names = JSON.stringify(needed.map(({ metadata }) => metadata.name));
    if (names === this.lastNames) return [];
    const request: KubeRequest = {
      method: "GET",
      path: `/api/v1/namespaces/${components}/secrets`,
      query: { labelSelector: MANAGED_BY_TEXT },
    };
    const list = parseJson(requireOk(await this.client.request(request), request));
    const found = listAt(list, "items") as readonly LiveObject[];
    const former = noLongerRendered(
      found.map((secret) => ({ ...secret, apiVersion: "v1", kind: "Secret" })),
      needed,
    );
    // Those that stay until pods are replaced are found again.
    if (former.length === 0) this.lastNames = names;
    return former;
  }
}
