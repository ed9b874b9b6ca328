/** User, password and certificates of etcd that are given themselves, not in files. Pure. */
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { PluginError } from "../../errors.ts";

type EtcdSettings = Extract<DatastoreSettings, { kind: "etcd" }>;

/** `texts`: the settings of all sources, by their names. */
export function withEtcdCredentials(settings: EtcdSettings, texts: ReadonlyMap<string, string>): EtcdSettings {
  const [key, cert, caCert] = [texts.get("etcd_key"), texts.get("etcd_cert"), texts.get("etcd_ca_cert")];
  const inline = {
    ...(key === undefined ? {} : { key }),
    ...(cert === undefined ? {} : { cert }),
    ...(caCert === undefined ? {} : { caCert }),
  };
  for (const name of ["etcd_key", "etcd_cert", "etcd_ca_cert"]) refuseBoth(texts, name, `${name}_file`);
  if ((key === undefined) !== (cert === undefined)) {
    throw invalid("etcd_key and etcd_cert belong together, and only one of them is given", "give both, or both files");
  }
  const user = withUser(settings, texts.get("etcd_username"), texts.get("etcd_password"));
  return Object.keys(inline).length === 0 ? user : { ...user, inline };
}

function refuseBoth(texts: ReadonlyMap<string, string>, name: string, file: string): void {
  if (texts.has(name) && texts.has(file)) throw invalid(`${name} and ${file} are both given`, "keep one of them");
}

/** The client takes them from the addresses of the endpoints. */
function withUser(settings: EtcdSettings, name: string | undefined, password: string | undefined): EtcdSettings {
  if (name === undefined && password === undefined) return settings;
  if (name === undefined || password === undefined) {
    throw invalid("etcd_username and etcd_password belong together, and only one of them is given", "give both");
  }
  if (settings.source.kind !== "endpoints") {
    throw invalid("etcd_username cannot be used with a discovery domain", "give the endpoints with etcd_endpoints");
  }
  const endpoints = settings.source.endpoints.map((text) => {
    const url = new URL(text);
    if (url.username !== "") return text;
    url.username = encodeURIComponent(name);
    url.password = encodeURIComponent(password);
    return url.href.replace(/\/$/, "");
  });
  return { ...settings, source: { kind: "endpoints", endpoints } };
}

function invalid(state: string, remedy: string): PluginError {
  return new PluginError("config-invalid", `Cannot use the datastore settings: ${state}`, { details: remedy });
}
