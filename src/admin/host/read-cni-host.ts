/**
 * The container runtimes of this host, as far as they matter to a network config: which CNI versions they know, and where
 * they look for plugins.
 *
 * What a runtime knows is in its executable: all of them are linked with CNI's own library, whose names are in it. So a
 * version that a distribution has changed is judged correctly too.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { CniVersion } from "../../cni/version.ts";
import type { CniHost, CniRuntime } from "../config/check-cni-host.ts";

const RUNTIMES = ["podman", "containerd", "crio"];
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Where runtimes look for plugins without a setting. */
const USUAL_DIRECTORIES = [
  "/opt/cni/bin",
  "/usr/lib/cni",
  "/usr/libexec/cni",
  "/usr/local/lib/cni",
  "/usr/local/libexec/cni",
  "/var/lib/rancher/k3s/data/cni",
  "/var/lib/rancher/k3s/data/current/bin",
  "/var/snap/microk8s/current/opt/cni/bin",
];

/** Settings of podman, later ones override earlier ones; in a directory, all files. */
function podmanSettings({ HOME, XDG_CONFIG_HOME, CONTAINERS_CONF, CONTAINERS_CONF_OVERRIDE }: Environment) {
  const own = XDG_CONFIG_HOME || (HOME ? join(HOME, ".config") : undefined);
  return [
    "/usr/share/containers/containers.conf",
    "/etc/containers/containers.conf",
    "/etc/containers/containers.conf.d",
    ...(own ? [join(own, "containers/containers.conf"), join(own, "containers/containers.conf.d")] : []),
    ...(CONTAINERS_CONF ? [CONTAINERS_CONF] : []),
    ...(CONTAINERS_CONF_OVERRIDE ? [CONTAINERS_CONF_OVERRIDE] : []),
  ];
}

/** Settings of containerd, also of the one in k3s, RKE2, MicroK8s and k0s, and of CRI-O. */
const OTHER_SETTINGS = [
  "/etc/containerd/config.toml",
  "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
  "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
  "/var/snap/microk8s/current/args/containerd.toml",
  "/etc/k0s/containerd.toml",
  "/etc/crio/crio.conf",
  "/etc/crio/crio.conf.d",
];
/** The settings that name directories of plugins: of podman, containerd and CRI-O. */
const DIRECTORY_SETTINGS: ReadonlySet<string> = new Set(["cni_plugin_dirs", "bin_dir", "bin_dirs", "plugin_dirs"]);

type Environment = Readonly<Record<string, string | undefined>>;

/** `root`: another directory than "/", for tests. */
export function readCniHost(environment: Environment, root = "/"): CniHost {
  const unreadable = new Set<string>();
  const look = lookBelow(root, (path) => unreadable.add(path));
  const read = new Set<string>();
  const settingsAt = (path: string) => filesAt(path, look).flatMap((file) => readSettings(file, look, read));
  const ofPodman = podmanSettings(environment).flatMap(settingsAt);
  const settings = [...ofPodman, ...OTHER_SETTINGS.flatMap(settingsAt)];
  const named = (environment["CNI_PATH"] ?? "").split(":");
  const directories = [...new Set([...named, ...settings.flatMap(directoriesOf), ...USUAL_DIRECTORIES])]
    .filter((path) => path.startsWith("/"))
    .flatMap((path) => look(path, (place) => ({ path, programs: readdirSync(place) })) ?? []);
  return {
    runtimes: RUNTIMES.filter((name) => name !== "podman" || podmanBackend(ofPodman, root) !== "netavark").flatMap(
      (name) => readRuntime(name, environment, root),
    ),
    pluginDirectories: directories.map(({ path }) => path),
    plugins: new Set(directories.flatMap(({ programs }) => programs)),
    unreadable: [...unreadable],
  };
}

/** What `read` returns of a path; `undefined` if it is absent or cannot be read. */
type Look = <Value>(path: string, read: (place: string) => Value) => Value | undefined;

function lookBelow(root: string, onUnreadable: (path: string) => void): Look {
  return (path, read) => {
    try {
      return read(join(root, path));
    } catch (failure) {
      if (!isAbsence(failure)) onUnreadable(path);
      return undefined;
    }
  };
}

function isAbsence(failure: unknown): boolean {
  const code = failure instanceof Error && "code" in failure ? failure.code : undefined;
  return code === "ENOENT" || code === "ENOTDIR" || code === "EISDIR";
}

function readRuntime(name: string, environment: Environment, root: string): readonly CniRuntime[] {
  const searched = root === "/" ? `${environment["PATH"] ?? ""}:${SYSTEM_PATH}` : join(root, "usr/bin");
  const path = Bun.which(name, { PATH: searched });
  if (path === null) return [];
  const knowledge = knowledgeIn(path);
  return knowledge === undefined ? [] : [{ name, ...knowledge }];
}

const LIBRARY = "containernetworking/cni";

/** `undefined`: it cannot be read, or does not use CNI, as podman 5 usually does not. */
function knowledgeIn(path: string): Omit<CniRuntime, "name"> | undefined {
  try {
    const content = readFileSync(path);
    if (!content.includes(`${LIBRARY}/libcni`)) return undefined;
    // Both came with version 1.2 of the library.
    if (content.includes("cniVersions")) return { readsSeveralVersions: true, newestVersion: "1.1.0" };
    const newestVersion: CniVersion = content.includes(`${LIBRARY}/pkg/types/100`) ? "1.0.0" : "0.4.0";
    return { readsSeveralVersions: false, newestVersion };
  } catch {
    return undefined;
  }
}

/** The file itself, or the files of a directory. */
function filesAt(path: string, look: Look): readonly string[] {
  const names = look(path, (place) => (statSync(place).isDirectory() ? readdirSync(place).sort() : undefined));
  return names === undefined ? [path] : names.map((name) => join(path, name));
}

/** Those of the file and of the files that it imports; none of a file that is absent, cannot be read or was `read` before. */
function readSettings(file: string, look: Look, read: Set<string>): readonly TomlTable[] {
  if (read.has(file)) return [];
  read.add(file);
  const settings = look(file, (place): unknown => Bun.TOML.parse(readFileSync(place, "utf8")));
  if (!isTable(settings)) return [];
  const imported = [settings["imports"]].flat().filter((each) => typeof each === "string");
  const files = imported.flatMap((pattern) => matching(resolve(dirname(file), pattern), look));
  return [settings, ...files.flatMap((each) => readSettings(each, look, read))];
}

type TomlTable = Readonly<Record<string, unknown>>;

/** The files that a path with "*" in its last part stands for. */
function matching(path: string, look: Look): readonly string[] {
  if (!/[*?[]/.test(path)) return [path];
  const glob = new Bun.Glob(basename(path));
  return (
    look(dirname(path), (place) => readdirSync(place).filter((name) => glob.match(name)))?.map((name) =>
      join(dirname(path), name),
    ) ?? []
  );
}

/** As set, otherwise as podman 4 has chosen once; `undefined` if it has not, or if only root may know. */
function podmanBackend(settings: readonly TomlTable[], root: string): unknown {
  const set = settings.findLast(({ network }) => isTable(network) && network["network_backend"])?.["network"];
  if (isTable(set)) return set["network_backend"];
  const look = lookBelow(root, () => undefined);
  return look("/var/lib/containers/storage/defaultNetworkBackend", (place) => readFileSync(place, "utf8").trim());
}

function isTable(value: unknown): value is TomlTable {
  return typeof value === "object" && value !== null;
}

function directoriesOf(settings: unknown): readonly string[] {
  if (!isTable(settings)) return [];
  return Object.entries(settings).flatMap(([name, value]: [string, unknown]) =>
    DIRECTORY_SETTINGS.has(name) ? [value].flat().filter((each) => typeof each === "string") : directoriesOf(value),
  );
}
