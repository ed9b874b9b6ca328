/**
 * The bare machine: a Debian with only git, make, nodejs and npm, in a
 * directory, entered with its own mount and PID namespace.
 *
 *   unshare ─> mmdebstrap into <folder>/root ─> pivot_root ─> git clone, make demo, make deb, make test
 *
 * Everything is mounted inside that namespace: all mounts and processes end with
 * the namespace, so the directory can always be removed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { CNI_BIN_DIRECTORY } from "../install/layout.ts";
import { run } from "../run.ts";
import { acquireSettings, debianSources } from "./apt-settings.ts";

const PACKAGES = ["git", "make", "nodejs", "npm"];

/** Environment variables of the caller that are needed to reach the registries. */
const CARRIED = /^(https?_proxy|no_proxy|all_proxy|npm_config_.*|pip_.*)$/i;

/** Variables with the path of a file of certificates, and the name of its copy in the home directory of the machine. */
const CERTIFICATES = { NODE_EXTRA_CA_CERTS: "npm-certificates.crt", PIP_CERT: "pip-certificates.crt" } as const;

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
say "installs a Debian $codename with ${PACKAGES.join(", ")}"
mmdebstrap --quiet --variant=minbase --include=${PACKAGES.join(",")} --aptopt="$folder"/apt.conf "$codename" "$root" "$@"

mount --bind "$root" "$root"
mount -t proc proc "$root"/proc
mount --rbind /sys "$root"/sys
mount --rbind /dev "$root"/dev
mount -t tmpfs run "$root"/run
cp /etc/resolv.conf "$root"/etc/resolv.conf
cp -r "$folder"/carried/. "$root"/root/
mv "$folder"/clone.bundle "$root"/root/
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
code=0
say "make demo"
make demo || code=1
say "make deb, dpkg"
package || { say "the package does not work"; code=1; }
say "make test"
make test || code=1
exit $code
`;

export interface BareMachine {
  /** Empty, and removed by the caller. */
  readonly folder: string;
  readonly repository: string;
}

/** Starts the machine and its script; the output is piped. It ends when its parent ends. */
export async function startBareMachine({ folder, repository }: BareMachine) {
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "stable";
  const sources = debianSources(sourceFiles(), codename);
  const { output } = await run(["apt-config", "dump", "Acquire"]);
  writeFileSync(join(folder, "apt.conf"), acquireSettings(output));
  await bundle(repository, join(folder, "clone.bundle"));
  const environment = copySettings(join(folder, "carried"));

  const apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"];
  return Bun.spawn(["setpriv", "--pdeathsig", "KILL", ...apart, "sh", "-c", SCRIPT, "sh", ...sources], {
    env: { ...environment, folder, codename, PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LC_ALL: "C.UTF-8" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
}

function sourceFiles(): ReadonlyMap<string, string> {
  const folder = "/etc/apt/sources.list.d";
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /\.(list|sources)$/.test(name)) : [];
  const paths = ["/etc/apt/sources.list", ...names.map((name) => join(folder, name))];
  return new Map(paths.filter((path) => existsSync(path)).map((path) => [path, readFileSync(path, "utf8")]));
}

async function bundle(repository: string, file: string): Promise<void> {
  const { code, output } = await run(["git", "-C", repository, "bundle", "create", "--quiet", file, "HEAD"]);
  if (code !== 0) throw new Error(`Cannot bundle the repository: ${output}`);
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
