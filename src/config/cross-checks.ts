/** Rules that no field can tell alone. They look at what is present, also when some value is bad. */
import { identity } from "../identity.ts";
import type { JsonObject } from "./network-config.ts";
import { type ConfigProblem, pathText } from "./problem.ts";
import { isObject } from "./wire-object.ts";

/** Something that works, but not as its author may think. Same shape as a problem. */
export type ConfigWarning = ConfigProblem;

export function crossProblems(present: JsonObject): readonly ConfigProblem[] {
  return [
    ...(has(present, "etcd_endpoints") && has(present, "etcd_discovery_srv")
      ? [
          finding(
            ["etcd_discovery_srv"],
            'is set together with "etcd_endpoints": allowed is one of the two; remove the one that is not meant',
          ),
        ]
      : []),
    ...withoutPartner(present, "etcd_cert_file", "etcd_key_file"),
    ...withoutPartner(present, "etcd_key_file", "etcd_cert_file"),
  ];
}

export function crossWarnings(present: JsonObject): readonly ConfigWarning[] {
  return [
    ...missingVersion(present),
    ...deprecated(present),
    ...tlsWithoutTls(present),
    ...ipamWarnings(present["ipam"]),
    ...relativePaths(present),
  ];
}

function withoutPartner(present: JsonObject, field: string, partner: string): readonly ConfigProblem[] {
  if (!has(present, field) || has(present, partner)) return [];
  return [
    finding([field], `is set without "${partner}": mutual TLS needs both; add "${partner}" or remove "${field}"`),
  ];
}

function missingVersion(present: JsonObject): readonly ConfigWarning[] {
  if (has(present, "cniVersion")) return [];
  return [finding(["cniVersion"], 'is missing: the config is read as version 0.1.0; add "cniVersion"')];
}

function deprecated(present: JsonObject): readonly ConfigWarning[] {
  const given = ["etcd_authority", "etcd_scheme"].filter((field) => has(present, field));
  const [first] = given;
  if (first === undefined) return [];
  const winner = ["etcd_endpoints", "etcd_discovery_srv"].find((field) => has(present, field));
  const names = given.map((field) => `"${field}"`).join(" and ");
  const state =
    winner === undefined
      ? `${names} deprecated: write "etcd_endpoints" instead`
      : `${names} deprecated and ignored because "${winner}" is set: remove`;
  return [
    { path: [first], message: state.replace(" deprecated", given.length === 1 ? " is deprecated" : " are deprecated") },
  ];
}

function tlsWithoutTls(present: JsonObject): readonly ConfigWarning[] {
  const endpoints = present["etcd_endpoints"];
  if (typeof endpoints !== "string" || /https:/i.test(endpoints)) return [];
  return ["etcd_key_file", "etcd_cert_file", "etcd_ca_cert_file"]
    .filter((field) => has(present, field))
    .map((field) => finding([field], 'has no effect: no URL in "etcd_endpoints" begins with https://'));
}

function ipamWarnings(ipam: unknown): readonly ConfigWarning[] {
  if (!isObject(ipam) || ipam["type"] !== identity.ipamType) return [];
  const assignsIpv6 = ipam["assign_ipv6"] === "true";
  return [
    ...(has(ipam, "ipv6_pools") && !assignsIpv6
      ? [finding(["ipam", "ipv6_pools"], 'is ignored: "assign_ipv6" is not "true"')]
      : []),
    ...(ipam["assign_ipv4"] === "false" && !assignsIpv6
      ? [
          finding(
            ["ipam", "assign_ipv4"],
            'is "false" and so is "assign_ipv6": only pods that ask for an address get one',
          ),
        ]
      : []),
  ];
}

/** Every field that holds the path of a file or directory on the host. */
const PATH_FIELDS: readonly (readonly string[])[] = [
  ["nodename_file"],
  ["datastore_path"],
  ["etcd_key_file"],
  ["etcd_cert_file"],
  ["etcd_ca_cert_file"],
  ["log_file_path"],
  ["endpoint_status_dir"],
  ["kubernetes", "kubeconfig"],
];

function relativePaths(present: JsonObject): readonly ConfigWarning[] {
  return PATH_FIELDS.filter((path) => {
    const value = path.reduce<unknown>((inner, step) => (isObject(inner) ? inner[step] : undefined), present);
    return typeof value === "string" && !value.startsWith("/");
  }).map((path) => finding(path, "is a relative path: it depends on where the runtime stands; write an absolute one"));
}

function finding(path: readonly string[], state: string): ConfigProblem {
  return { path, message: `"${pathText(path)}" ${state}` };
}

function has(present: JsonObject, field: string): boolean {
  return present[field] !== undefined;
}
