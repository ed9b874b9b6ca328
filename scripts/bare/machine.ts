/**
 * The bare machine: a Debian with only git, make, nodejs and npm, in a
 * directory, entered with its own mount and PID namespace, its own host name and
 * an uptime of minutes.
 *
 *   unshare ─> mmdebstrap into <folder>/root ─> pivot_root ─> git clone ─> make demo, and with "everything" make deb, make test
 *
 * Everything is mounted inside that namespace: all mounts and processes end with
 * the namespace, so the directory can always be removed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { CNI_BIN_DIRECTORY } from "../../src/release/host-files.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { APT_HELPER, PUBLIC_SITE } from "../image/download.ts";
import { run } from "../run.ts";
import { asAnotherMachine } from "./another-machine.ts";
import { acquireSettings, archivesIn, debianSources } from "./apt-settings.ts";

const PACKAGES = ["git", "make", "nodejs", "npm"];

/** Environment variables of the caller that are needed to reach the registries. */
const CARRIED =
  /^(https?_proxy|no_proxy|all_proxy|npm_config_.*|pip_.*|go(proxy|noproxy|private|sumdb|nosumdb|insecure))$/i;

/** Variables with the path of a file of certificates, and the name of its copy in the home directory of the machine. */
const CERTIFICATES = {
  NODE_EXTRA_CA_CERTS: "npm-certificates.crt",
  PIP_CERT: "pip-certificates.crt",
  // Go's.
  SSL_CERT_FILE: "certificates.crt",
} as const;

const codename = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "stable";

const REACH_SECONDS = 10;

const SCRIPT = `
set -eu
say() { echo "bare: $*"; }
package() {
  make deb &&
    dpkg -i dist/*.deb &&
    ${CNI_BIN_DIRECTORY}/${identity.adminTool} version &&
    CNI_COMMAND=VERSION ${CNI_BIN_DIRECTORY}/${identity.product} &&
    dpkg -P ${identity.product}
}
root="$folder"/root
read uptime rest </proc/uptime
say "host name $(cat /proc/sys/kernel/hostname), up for $uptime seconds"
say "installs a Debian $codename with ${PACKAGES.join(", ")}"
mmdebstrap --quiet --variant=minbase --include=${PACKAGES.join(",")} --aptopt="$folder"/apt.conf "$codename" "$root" "$@"

mount --bind "$root" "$root"
mount -t proc proc "$root"/proc
mount --rbind /sys "$root"/sys
mount --rbind /dev "$root"/dev
mount -t tmpfs run "$root"/run
cp /etc/resolv.conf "$root"/etc/resolv.conf
cp /proc/sys/kernel/hostname "$root"/etc/hostname
cp -r "$folder"/carried/. "$root"/root/
mv "$folder"/clone.bundle "$folder"/changes.patch "$root"/root/
cd "$root"
mkdir outside
pivot_root . outside
cd /
umount -l /outside
rmdir /outside

say "$(dpkg-query --show nodejs npm | tr '\\n' ' ')"
cd /root
git -c advice.detachedHead=false clone --quiet clone.bundle clone
cd clone
if [ -s ../changes.patch ]; then
  say "with the uncommitted changes"
  git apply ../changes.patch
fi
code=0
say "make demo"
make demo || code=1
[ "$work" = everything ] || exit $code
say "make deb, dpkg"
package || { say "the package does not work"; code=1; }
say "make test"
make test || code=1
exit $code
`;

/** A variable that is set on the bare machine. */
const MARK = "ON_BARE_MACHINE";

export const isBareMachine = process.env[MARK] !== undefined;

export interface BareMachine {
  /** Empty, and removed by the caller. */
  readonly folder: string;
  readonly repository: string;
  readonly work: "demo" | "everything";
}

/** Starts the machine and its script; the output is piped. It ends when its parent ends. */
export async function startBareMachine({ folder, repository, work }: BareMachine) {
  const sources = debianSources(sourceFiles(), codename);
  const { output } = await run(["apt-config", "dump", "Acquire"]);
  writeFileSync(join(folder, "apt.conf"), acquireSettings(output));
  await bundle(repository, folder);
  const environment = copySettings(join(folder, "carried"));

  const apart = ["--mount", "--propagation", "private", "--pid", "--kill-child", "--mount-proc"];
  const command = [...asAnotherMachine(apart), "sh", "-c", SCRIPT, "sh", ...sources];
  const settings = { folder, codename, work, [MARK]: "1", PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root" };
  return Bun.spawn(["setpriv", "--pdeathsig", "KILL", ...command], {
    env: { ...environment, ...settings, LC_ALL: "C.UTF-8" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
}

/** Why there can be no bare machine here; undefined if there can be one. */
export async function bareMachineProblem(repository: string): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "needs root";
  const missing = ["apt-config", "mmdebstrap"].filter((program) => Bun.which(program) === null);
  if (missing.length > 0) return `needs ${missing.join(", ")}`;
  if (!existsSync(join(repository, ".git"))) return "needs a git clone";
  const { code, output } = await run([...asAnotherMachine(["--mount", "--pid"]), "true"]);
  if (code !== 0) return `needs namespaces of its own: ${output}`;
  const files = sourceFiles();
  const archives = debianSources(files, codename).flatMap((path) => archivesIn(files.get(path) ?? "", codename));
  const [archive = `${PUBLIC_SITE}/debian`] = archives;
  return (await isReachable(archive)) ? undefined : `cannot reach ${archive}`;
}

/** With apt's own settings. */
async function isReachable(archive: string): Promise<boolean> {
  const folder = temporaryDirectory("reach");
  const options = ["APT::Sandbox::User=root", `Acquire::http::Timeout=${REACH_SECONDS}`, "Acquire::Retries=1"];
  const download = ["download-file", `${archive}/dists/${codename}/InRelease`, join(folder.path, "InRelease")];
  const { code } = await run([APT_HELPER, ...options.flatMap((option) => ["-o", option]), ...download]);
  folder.remove();
  return code === 0;
}

function sourceFiles(): ReadonlyMap<string, string> {
  const folder = "/etc/apt/sources.list.d";
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /\.(list|sources)$/.test(name)) : [];
  const paths = ["/etc/apt/sources.list", ...names.map((name) => join(folder, name))];
  return new Map(paths.filter((path) => existsSync(path)).map((path) => [path, readFileSync(path, "utf8")]));
}

/** The last commit, and a patch with what was changed, created and deleted since. */
async function bundle(repository: string, folder: string): Promise<void> {
  // With an index of its own: the repository's stays as it is.
  const index = `GIT_INDEX_FILE=${join(folder, "index")}`;
  const git = async (...args: readonly string[]) => {
    const { code, output } = await run(["env", index, "git", "-C", repository, ...args]);
    if (code !== 0) throw new Error(`Cannot bundle the repository: ${output}`);
  };
  await git("bundle", "create", "--quiet", join(folder, "clone.bundle"), "HEAD");
  await git("read-tree", "HEAD");
  await git("add", "--all");
  await git("diff", "--cached", "--binary", `--output=${join(folder, "changes.patch")}`, "HEAD");
}

/** Copies the caller's settings of npm and pip into the home directory of the machine; returns the environment variables to set. */
function copySettings(home: string): Readonly<Record<string, string>> {
  mkdirSync(home);
  const settings = join(homedir(), ".npmrc");
  if (existsSync(settings)) writeFileSync(join(home, ".npmrc"), readFileSync(settings), { mode: 0o600 });
  const environment: Record<string, string> = {};
  for (const [name, value = ""] of Object.entries(process.env)) if (CARRIED.test(name)) environment[name] = value;
  for (const [name, file] of Object.entries(CERTIFICATES)) {
    const certificates = process.env[name];
    if (certificates === undefined || !existsSync(certificates)) continue;
    writeFileSync(join(home, file), readFileSync(certificates));
    environment[name] = `/root/${file}`;
  }
  return environment;
}
