/** How the pods of an installation reach etcd: carried over from the live settings, and refused if it cannot work. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { quoted } from "../../quote.ts";
import type { Obstacle } from "../engine/facts.ts";
import { fieldsIn, itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf } from "../pod-template.ts";

/** Settings with the key of the Secret that each names the file of. */
const FILES = [
  ["etcd_ca", "etcd-ca"],
  ["etcd_cert", "etcd-cert"],
  ["etcd_key", "etcd-key"],
] as const;

/** Variables of the node agent that the settings are given to. */
const VARIABLES: Readonly<Record<string, string>> = {
  etcd_endpoints: "ETCD_ENDPOINTS",
  etcd_ca: "ETCD_CA_CERT_FILE",
  etcd_cert: "ETCD_CERT_FILE",
  etcd_key: "ETCD_KEY_FILE",
};

export interface EtcdAccess {
  /** Keys of the settings. */
  readonly data: Readonly<Record<string, string>>;
  /** Directories of pods that the settings name. */
  readonly directories: readonly string[];
  /** What the volume with the certificates comes from, if it is not the Secret of the manifests. */
  readonly source?: Fields;
  readonly notes: readonly string[];
  readonly obstacles: readonly Obstacle[];
}

export interface EtcdSituation {
  /** Of the node agent: what it has there is what it uses, whatever the settings say. */
  readonly environment?: ReadonlyMap<string, string>;
  readonly settings: Fields | undefined;
  readonly secret: Fields | undefined;
  readonly daemonSet: Fields;
  readonly secretName: string;
}

export function etcdAccess({ environment, settings, secret, daemonSet, secretName }: EtcdSituation): EtcdAccess {
  const given = fieldsIn(settings, "data");
  const variable = (key: string) => environment?.get(VARIABLES[key] ?? "");
  const value = (key: string) => variable(key) ?? textIn(given, key) ?? "";
  const others = Object.entries(VARIABLES).filter(([key]) => value(key) !== (textIn(given, key) ?? ""));
  const notes = others.map(
    ([key, name]) =>
      `The setting ${key} becomes ${quoted(value(key))}, which the variable ${name} of the node agent is`,
  );
  const files = FILES.filter(([key]) => value(key) !== "");
  const source = otherSource(daemonSet, secretName);
  const directories = [...new Set(files.map(([key]) => value(key).replace(/\/[^/]*$/, "")))];
  const obstacles = [
    ...endpointObstacles(value("etcd_endpoints")),
    ...files.flatMap(([key, name]) =>
      fileObstacles({ key, name, path: value(key) }, source === undefined ? secret : undefined),
    ),
  ];
  const data = {
    etcd_endpoints: value("etcd_endpoints"),
    ...Object.fromEntries(FILES.map(([key]) => [key, value(key)])),
  };
  return { data, directories, ...(source === undefined ? {} : { source }), notes, obstacles };
}

/** Certificates that the user has somewhere else, such as in a directory of the host. */
function otherSource(daemonSet: Fields, secretName: string): Fields | undefined {
  const volume =
    named(itemsIn(podSpecOf(daemonSet), "volumes"), "etcd-certs") ??
    named(itemsIn(podSpecOf(daemonSet), "volumes"), "etcd-secrets");
  if (volume === undefined || fieldsIn(volume, "secret")["secretName"] === secretName) return undefined;
  const { name: _, ...source } = volume;
  return source;
}

/** `https://10.0.0.1:2379` */
function isEndpointUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.hostname !== "";
}

function endpointObstacles(endpoints: string): readonly Obstacle[] {
  const remedy = "set etcd_endpoints in the ConfigMap to the URLs of etcd, separated by commas";
  if (endpoints === "") return [{ message: "The setting etcd_endpoints is empty", remedy }];
  if (endpoints.includes("<"))
    return [{ message: `The setting etcd_endpoints is the placeholder ${quoted(endpoints)}`, remedy }];
  const wrong = endpoints.split(",").find((each) => !isEndpointUrl(each.trim()));
  return wrong === undefined
    ? []
    : [{ message: `The setting etcd_endpoints has ${quoted(wrong)}, which is not a URL`, remedy }];
}

/** `secret`: absent if the files are somewhere else. */
function fileObstacles(
  { key, name, path }: { readonly key: string; readonly name: string; readonly path: string },
  secret: Fields | undefined,
): readonly Obstacle[] {
  if (path.includes("<") || !path.startsWith("/")) {
    return [
      { message: `The setting ${key} is ${quoted(path)}, which is not a path`, remedy: "correct it in the ConfigMap" },
    ];
  }
  if (!path.endsWith(`/${name}`)) {
    return [
      {
        message: `The setting ${key} is ${quoted(path)}: the file has another name than ${name}`,
        remedy: `name it ${name}`,
      },
    ];
  }
  if (secret === undefined || (textIn(fieldsIn(secret, "data"), name) ?? "") !== "") return [];
  return [
    {
      message: `The Secret has no ${name}, but the setting ${key} is ${quoted(path)}`,
      remedy: `put the file into the Secret as ${name}`,
    },
  ];
}
