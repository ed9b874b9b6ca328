/**
 * Checks a network config against the host that it is for: the CNI versions that the container runtimes there accept, and
 * the plugins that they find. Pure; `host/read-cni-host.ts` looks at the host.
 */
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import {
  CNI_VERSIONS,
  type CniVersion,
  FIRST_CHAINING_VERSION,
  isAtLeast,
  isCniVersion,
  VERSION_WHEN_ABSENT,
} from "../../cni/version.ts";
import { type ConfigPath, shownValue } from "../../config/problem.ts";
import { identity } from "../../identity.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { type ConfigFinding, error, note, refusedHere, warning } from "./finding.ts";

export interface CniHost {
  readonly runtimes: readonly CniRuntime[];
  /** Those that exist, in the order in which they are searched. */
  readonly pluginDirectories: readonly string[];
  /** The names of all programs in them. */
  readonly plugins: ReadonlySet<string>;
  /** Plugin directories, and settings that may name others, that exist but cannot be read: plugins may be there too. */
  readonly unreadable: readonly string[];
}

export interface CniRuntime {
  readonly name: string;
  /** Whether it chooses one of `cniVersions`; others know only `cniVersion`. */
  readonly readsSeveralVersions: boolean;
  readonly newestVersion: CniVersion;
}

/** Before version 1.2 of CNI's library; podman 4 and containerd 1 contain it. */
const OLDER_RUNTIME: CniRuntime = {
  name: "such a runtime",
  readsSeveralVersions: false,
  newestVersion: "1.0.0",
};

/**
 * `undefined`: the host is not known. What every older runtime refuses is a warning then. Only a version of no release is an
 * error: a runtime may be found that is not the one that will read the file.
 */
export function checkVersions(raw: JsonObject, host: CniHost | undefined): readonly ConfigFinding[] {
  const runtimes = host?.runtimes ?? [];
  if (runtimes.length === 0) {
    const reason = isUnknownToOlder(raw) ? whyRefused(raw, OLDER_RUNTIME) : undefined;
    const who = "Older runtimes (podman 4, containerd 1) refuse the network";
    if (reason === undefined) return [];
    return [warning(["cniVersion"], `${who}: ${stateOf(raw)}, but ${reason}; ${fixFor(raw, [OLDER_RUNTIME])}`)];
  }
  const refusing = runtimes.filter((runtime) => whyRefused(raw, runtime) !== undefined);
  if (refusing.length === 0) return [];
  const names = refusing.map(({ name }) => name).join(" and ");
  const reasons = refusing.map((runtime) => whyRefused(raw, runtime)).join(", and ");
  const message = `${names} of this host ${refusing.length === 1 ? "refuses" : "refuse"} the network: ${stateOf(raw)}, but ${reasons}; ${fixFor(raw, refusing)}`;
  const isCertain = refusing.length === runtimes.length && isSet(raw) && !isCniVersion(raw["cniVersion"]);
  return [(isCertain ? error : refusedHere)(["cniVersion"], message)];
}

function isSet(raw: JsonObject): boolean {
  return (raw["cniVersion"] ?? "") !== "";
}

function stateOf(raw: JsonObject): string {
  return isSet(raw) ? `"cniVersion" is ${shownValue(raw["cniVersion"])}` : '"cniVersion" is not set';
}

/** A `cniVersion` that is missing or unknown, which only `cniVersions` makes acceptable. */
function isUnknownToOlder(raw: JsonObject): boolean {
  return versionsIn(raw).length > 0 && !isCniVersion(raw["cniVersion"]);
}

function whyRefused(raw: JsonObject, { name, readsSeveralVersions, newestVersion }: CniRuntime): string | undefined {
  const single = raw["cniVersion"] ?? "";
  if (readsSeveralVersions || typeof single !== "string") return undefined;
  if (isCniVersion(single)) {
    return isAtLeast(newestVersion, single) ? undefined : `${name} knows only ${newestVersion} and earlier`;
  }
  // Without `cniVersions`, this is a mistake of the file that every runtime refuses.
  if (versionsIn(raw).length === 0) return undefined;
  if (single !== "") return `${name} does not know it and does not read "cniVersions"`;
  const plugins = Array.isArray(raw["plugins"]) ? raw["plugins"] : [];
  if (plugins.length < 2) return undefined;
  return `${name} does not read "cniVersions" and assumes ${VERSION_WHEN_ABSENT} (lists of plugins need ${FIRST_CHAINING_VERSION})`;
}

function versionsIn(raw: JsonObject): readonly CniVersion[] {
  const several = raw["cniVersions"];
  return Array.isArray(several) ? several.filter(isCniVersion) : [];
}

/** The newest version that the file offers and they all know, otherwise the newest that they know. */
function fixFor(raw: JsonObject, runtimes: readonly CniRuntime[]): string {
  const known = CNI_VERSIONS.filter((version) =>
    runtimes.every(({ newestVersion }) => isAtLeast(newestVersion, version)),
  );
  const offered = known.findLast((version) => versionsIn(raw).includes(version));
  return `set "cniVersion" to "${offered ?? known.at(-1)}"`;
}

interface Placed {
  readonly entry: unknown;
  readonly place: ConfigPath;
}

/** Types that a runtime, or the plugin for its IPAM, cannot start. */
export function checkPlugins(entries: readonly Placed[], host: CniHost): readonly ConfigFinding[] {
  if (host.pluginDirectories.length === 0 && host.unreadable.length === 0) return [];
  return entries.flatMap(({ entry, place }) => {
    if (!isJsonObject(entry)) return [];
    const { type, ipam } = entry;
    const ipamType = isJsonObject(ipam) ? ipam["type"] : undefined;
    const isServedInside = type === identity.product && OWN_IPAM_TYPES.includes(String(ipamType));
    return [
      ...checkInstalled(type, [...place, "type"], host),
      ...(isServedInside ? [] : checkInstalled(ipamType, [...place, "ipam", "type"], host)),
    ];
  });
}

const OWN_IPAM_TYPES = [identity.ipamType, "host-local"];
const OWN_TYPES = [identity.product, identity.ipamType, "portmap", "bandwidth"];
/** Those that name the product, and not a plugin that other projects have too. */
const PRODUCT_TYPES = [identity.product, identity.ipamType];

/** Runtimes find plugins in places that are not known here, so only IPAM and misspelt types of our own are errors. */
function checkInstalled(type: unknown, path: ConfigPath, host: CniHost): readonly ConfigFinding[] {
  if (typeof type !== "string" || type === "" || type.includes("/") || host.plugins.has(type)) return [];
  if (host.unreadable.length > 0) {
    const places = host.unreadable.join(" and ");
    return [
      note(
        path,
        `Whether ${shownValue(type)} is installed is not known: could not look into ${places}; run this as root`,
      ),
    ];
  }
  const state = `${shownValue(type)} is in no plugin directory (${host.pluginDirectories.join(", ")})`;
  if (OWN_TYPES.includes(type) && !host.plugins.has(identity.product)) {
    const advice = `${identity.title} is not installed on this host`;
    return PRODUCT_TYPES.includes(type) ? [warning(path, `${state}: ${advice}`)] : [];
  }
  const isIpam = path.includes("ipam");
  const own = isIpam ? OWN_IPAM_TYPES : OWN_TYPES;
  const nearest = (known: readonly string[]) =>
    nearestName(
      type,
      known.filter((each) => each !== type),
    );
  const meant = nearest([...own, ...host.plugins]);
  const elsewhere = "f it is elsewhere, name its directory in CNI_PATH";
  const fix =
    meant === undefined ? `install it, or correct the type; i${elsewhere}` : `did you mean "${meant}"? I${elsewhere}`;
  const isCertain = isIpam || own.includes(type) || nearest(own) !== undefined;
  return [isCertain ? error(path, `${state}, so every ADD fails: ${fix}`) : warning(path, `${state}: ${fix}`)];
}
