/** The profiles of namespaces and service accounts, derived from them on every read. They cannot be written, and there are no others. */
import { PluginError } from "../../errors.ts";
import { nameInKey, resourceKey, resourcesPrefix } from "../../model/keys.ts";
import {
  ACCOUNT_PROFILE,
  accountProfile,
  NAMESPACE_PROFILE,
  namespaceProfile,
} from "../../model/orchestrator-profile.ts";
import type { Profile } from "../../model/profile.ts";
import { quoted } from "../../quote.ts";
import type { KindMapping, ObjectRecord } from "./kind-mapping.ts";
import { isObjectName } from "./object-names.ts";

const PREFIX = resourcesPrefix("profiles");

export const derivedProfiles: readonly KindMapping[] = [
  {
    ...readOnly(`${PREFIX}${NAMESPACE_PROFILE}`),
    path: (key) => pathOf(nameInKey(key)),
    collections: () => [{ path: "/api/v1/namespaces" }],
    record: (namespace) => recordOf(namespaceProfile(namespace)),
  },
  {
    ...readOnly(`${PREFIX}${ACCOUNT_PROFILE}`),
    path: (key) => pathOf(nameInKey(key)),
    collections: () => [{ path: "/api/v1/serviceaccounts" }],
    record: (account) => recordOf(accountProfile(account)),
  },
  { ...readOnly(PREFIX), path: () => undefined, collections: () => [], record: () => undefined },
];

function recordOf(profile: Profile): ObjectRecord {
  return { key: resourceKey("profiles", { name: profile.metadata.name }), value: JSON.stringify(profile) };
}

/** The name of a namespace contains no dot. */
function pathOf(name: string): string | undefined {
  if (!isObjectName(name)) return undefined;
  if (name.startsWith(NAMESPACE_PROFILE)) return `/api/v1/namespaces/${name.slice(NAMESPACE_PROFILE.length)}`;
  const [namespace, ...account] = name.slice(ACCOUNT_PROFILE.length).split(".");
  return account.length === 0 ? undefined : `/api/v1/namespaces/${namespace}/serviceaccounts/${account.join(".")}`;
}

function readOnly(prefix: string): Pick<KindMapping, "prefix" | "create" | "update" | "remove"> {
  const refuse = (key: string): never => {
    throw new PluginError(
      "resource-invalid",
      `Cannot write ${quoted(key)}: with the Kubernetes API as the datastore, profiles are derived from namespaces and service accounts`,
      { details: "label the namespace or the service account instead" },
    );
  };
  return { prefix, create: refuse, update: refuse, remove: refuse };
}
