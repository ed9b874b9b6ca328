/**
 * The profiles of namespaces and service accounts, derived from them on every
 * read. They cannot be written, and there are no others.
 *
 *   kns.NAMESPACE            allows everything; its endpoints inherit the labels of the namespace
 *   ksa.NAMESPACE.ACCOUNT    no rules; its endpoints inherit the labels of the service account
 */
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { parseKey, resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { quoted } from "../../quote.ts";
import type { ApiObject } from "./api.ts";
import type { KindMapping } from "./kind-mapping.ts";
import { isObjectName } from "./object-names.ts";

const PREFIX = resourcesPrefix("profiles");
const NAMESPACE = "kns.";
const ACCOUNT = "ksa.";

export const derivedProfiles: readonly KindMapping[] = [
  {
    ...readOnly(`${PREFIX}${NAMESPACE}`),
    path: (key) => pathOf(nameIn(key)),
    collections: () => [{ path: "/api/v1/namespaces" }],
    record: (namespace) =>
      profileOf(namespace, {
        name: `${NAMESPACE}${namespace.metadata.name}`,
        prefix: "pcns.",
        rules: { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] },
      }),
  },
  {
    ...readOnly(`${PREFIX}${ACCOUNT}`),
    path: (key) => pathOf(nameIn(key)),
    collections: () => [{ path: "/api/v1/serviceaccounts" }],
    record: (account) =>
      profileOf(account, {
        name: `${ACCOUNT}${account.metadata.namespace}.${account.metadata.name}`,
        prefix: "pcsa.",
        rules: {},
      }),
  },
  { ...readOnly(PREFIX), path: () => undefined, collections: () => [], record: () => undefined },
];

function nameIn(key: string): string {
  const parts = parseKey(key);
  return parts?.kind === "resource" ? parts.name : "";
}

/** The name of a namespace contains no dot. */
function pathOf(name: string): string | undefined {
  if (!isObjectName(name)) return undefined;
  if (name.startsWith(NAMESPACE)) return `/api/v1/namespaces/${name.slice(NAMESPACE.length)}`;
  const [namespace, ...account] = name.slice(ACCOUNT.length).split(".");
  return account.length === 0 ? undefined : `/api/v1/namespaces/${namespace}/serviceaccounts/${account.join(".")}`;
}

function profileOf(
  { metadata }: ApiObject,
  { name, prefix, rules }: { readonly name: string; readonly prefix: string; readonly rules: object },
) {
  const labels = { ...metadata.labels, [`${identity.labelPrefix}name`]: metadata.name };
  const { uid, creationTimestamp } = metadata;
  const profile = {
    apiVersion: API_VERSION,
    kind: "Profile",
    metadata: { name, uid, creationTimestamp },
    spec: {
      ...rules,
      labelsToApply: Object.fromEntries(Object.entries(labels).map(([label, value]) => [`${prefix}${label}`, value])),
    },
  };
  return { key: resourceKey("profiles", { name }), value: JSON.stringify(profile) };
}

function readOnly(prefix: string): Pick<KindMapping, "prefix" | "create" | "update" | "remove"> {
  const refuse = (key: string): never => {
    throw new PluginError(
      "resource-invalid",
      `Cannot write ${quoted(key)}: with the orchestrator's API as the datastore, profiles are derived from namespaces and service accounts`,
      { details: "label the namespace or the service account instead" },
    );
  };
  return { prefix, create: refuse, update: refuse, remove: refuse };
}
