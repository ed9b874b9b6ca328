/**
 * The container runtimes of this host, as far as they matter to a network config: which CNI versions they know, and where
 * they look for plugins.
 *
 * What a runtime knows is in its executable: all of them are linked with CNI's own library, whose names are in it. So a
 * version that a distribution has changed is judged correctly too.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { CniVersion } from "../../cni/version.ts";
import type { CniHost, CniRuntime } from "../cni-host.ts";

const RUNTIMES = ["podman", "containerd", "crio"];
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Where runtimes look for plugins without a setting. */
const USUAL_DIRECTORIES = [
  "/opt/cni/bin",
  "/usr/lib/cni",
  "/usr/libexec/cni",
  "/usr/local/lib/cni",
  "/usr/local/libexec/cni",
];

/** Their settings; in a directory, all files. */
const SETTINGS = [
  "/usr/share/containers/containers.conf",
  "/etc/containers/containers.conf",
  "/etc/containers/containers.conf.d",
  "/etc/containerd/config.toml",
  "/etc/crio/crio.conf",
  "/etc/crio/crio.conf.d",
];
/** The settings that name directories of plugins: of podman, containerd and CRI-O. */
const DIRECTORY_SETTINGS: ReadonlySet<string> = new Set(["cni_plugin_dirs", "bin_dir", "bin_dirs", "plugin_dirs"]);

type Environment = Readonly<Record<string, string | undefined>>;

/** `root`: another directory than "/", for tests. */
export function readCniHost(environment: Environment, root = "/"): CniHost {
  const unreadable = new Set<string>();
  const look: Look = (path, read) => {
    try {
      return read(join(root, path));
    } catch (failure) {
      if (!isAbsence(failure)) unreadable.add(path);
      return undefined;
    }
  };
  const settings = SETTINGS.flatMap((path) => filesAt(path, look)).flatMap((file) => readSettings(file, look));
  const named = (environment["CNI_PATH"] ?? "").split(":");
  const directories = [...new Set([...named, ...settings.flatMap(directoriesOf), ...USUAL_DIRECTORIES])]
    .filter((path) => path.startsWith("/"))
    .flatMap((path) => look(path, (place) => ({ path, programs: readdirSync(place) })) ?? []);
  return {
    runtimes: RUNTIMES.flatMap((name) => readRuntime(name, environment, root)),
    pluginDirectories: directories.map(({ path }) => path),
    plugins: new Set(directories.flatMap(({ programs }) => programs)),
    unreadable: [...unreadable],
  };
}

/** What `read` returns of a path; `undefined` if it is absent, or cannot be read, which is remembered. */
type Look = <Value>(path: string, read: (place: string) => Value) => Value | undefined;

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

/** None of a file that is absent, or cannot be read or parsed. */
function readSettings(file: string, look: Look): readonly unknown[] {
  const settings = look(file, (place): unknown => Bun.TOML.parse(readFileSync(place, "utf8")));
  return settings === undefined ? [] : [settings];
}

function directoriesOf(settings: unknown): readonly string[] {
  if (typeof settings !== "object" || settings === null) return [];
  return Object.entries(settings).flatMap(([name, value]: [string, unknown]) =>
    DIRECTORY_SETTINGS.has(name) ? [value].flat().filter((each) => typeof each === "string") : directoriesOf(value),
  );
}
