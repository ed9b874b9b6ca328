/**
 * The Debian package: what it holds, that it is reproducible, and that dpkg
 * installs, upgrades and removes it. For dpkg this host's own root is overlaid
 * by a folder in memory, so that nothing it does is seen outside.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildPackage } from "../../scripts/deb/build-package.ts";
import { programNames } from "../../src/bin/programs.ts";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { packageRequest } from "../support/package-request.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const { product, nodeAgent, adminTool, configDirectory } = identity;
const needs = [program("dpkg-deb"), program("tar")];
const testPackage = testNeeding(...needs);
const testInstallation = testNeeding(root, program("dpkg"), program("systemctl"), ...needs);

const directory = temporaryDirectory("package-test");
afterAll(() => directory.remove());

const REQUEST = packageRequest(directory.path);

let file = "";
let newer = "";
beforeAll(async () => {
  if (needs.some((need) => need !== undefined)) return;
  file = await buildPackage(REQUEST);
  newer = await buildPackage({ ...REQUEST, version: "1.2.4" });
});

function print(...command: readonly string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command]);
  expect({ exitCode, stderr: stderr.toString() }).toMatchObject({ exitCode: 0 });
  return stdout.toString();
}

describe("the Debian package", () => {
  testPackage("names its architecture, what it depends on, its settings and its scripts", () => {
    expect(file).toEndWith(`/${product}_1.2.3_${REQUEST.architecture}.deb`);
    expect(print("dpkg-deb", "--field", file, "Package", "Version", "Depends").split("\n").slice(0, 3)).toEqual([
      `Package: ${product}`,
      "Version: 1.2.3",
      "Depends: libc6 (>= 2.17)",
    ]);
    expect(print("dpkg-deb", "--info", file, "conffiles")).toBe(`${configDirectory}/${adminTool}.yaml\n`);
  });

  testPackage("depends on a C library that has all that the executable asks for", () => {
    const versions = readFileSync(builtProgram(product), "latin1").matchAll(/GLIBC_2\.(\d+)/g);

    expect(Math.max(...[...versions].map(([, minor]) => Number(minor)))).toBe(17);
  });

  testPackage("belongs to root, with the modes that it should have", () => {
    const rows = print("dpkg-deb", "--contents", file).trim().split("\n");
    const modes = new Map(rows.map((row) => [row.split(/\s+/)[5]?.slice(1) ?? "", row.split(/\s+/)[0] ?? ""]));

    expect(rows.filter((row) => !row.includes(" root/root "))).toEqual([]);
    expect(modes.get(join(BIN_DIRECTORY, product))).toBe("-rwxr-xr-x");
    expect(modes.get(`${configDirectory}/${adminTool}.yaml`)).toBe("-rw-r--r--");
    expect([...modes.values()].filter((mode) => /[sStT]/.test(mode))).toEqual([]);
    for (const name of Object.values(programNames(identity))) expect(modes.has(join(BIN_DIRECTORY, name))).toBe(true);
  });

  testPackage("is the same to the byte if it is built again, elsewhere, later", async () => {
    const folder = join(directory.path, "again");
    mkdirSync(folder);
    const executable = join(folder, "copy");
    copyFileSync(REQUEST.executable, executable);
    chmodSync(executable, 0o700);
    const again = await buildPackage({ ...REQUEST, executable, folder });

    expect(Bun.hash(readFileSync(again))).toBe(Bun.hash(readFileSync(file)));
    rmSync(folder, { recursive: true });
  });

  test("is not built from an executable with a setuid bit", async () => {
    const executable = join(directory.path, "setuid");
    writeFileSync(executable, "", { mode: 0o755 });
    chmodSync(executable, 0o4755);

    expect(buildPackage({ ...REQUEST, executable })).rejects.toThrow("setuid");
  });
});

/** Runs a script as root of a copy of this host, with a systemctl that starts and stops nothing, but writes it down. */
function onCopyOfHost(script: string): { readonly code: number; readonly printed: string } {
  const setUp = `set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --rbind /dev /mnt/root/dev
mount -t proc proc /mnt/root/proc
mount -t tmpfs none /mnt/root/run
rm -rf /mnt/root${BIN_DIRECTORY}
mkdir /mnt/root/packages
cp "$1" /mnt/root/packages/first.deb
cp "$2" /mnt/root/packages/newer.deb
exec chroot /mnt/root sh -ec "$3" 2>&1
`;
  const prelude = `
rm -f /usr/sbin/policy-rc.d
: >/tmp/asked
mv /usr/bin/systemctl /usr/bin/systemctl.real
cat >/usr/bin/systemctl <<'end'
#!/bin/sh
case "$*" in *start*|*stop*|*daemon-reload*) echo "systemctl $*" >>/tmp/asked ;; *) SYSTEMD_OFFLINE=1 exec systemctl.real "$@" ;; esac
end
chmod 755 /usr/bin/systemctl
ours() { find /opt /etc /usr/bin /usr/sbin /usr/lib/systemd /usr/share -maxdepth 3 -name '*${product}*' | sort; }
ours >/tmp/before
`;
  const apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"];
  const command = [...apart, "sh", "-c", setUp, "sh", file, newer, `${prelude}${script}`];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { timeout: 100_000 });
  return { code: exitCode, printed: `${stdout}${stderr}` };
}

describe("dpkg with the package", () => {
  testInstallation("installs it without systemd; every name works; removing and purging leaves nothing", () => {
    const { code, printed } = onCopyOfHost(`
rm -rf /opt; mkdir /opt
dpkg -i /packages/first.deb
${adminTool} version
${nodeAgent} -v
CNI_COMMAND=VERSION ${BIN_DIRECTORY}/portmap
test -f ${configDirectory}/${adminTool}.yaml
dpkg --verify ${product}
dpkg -r ${product}
test -f ${configDirectory}/${adminTool}.yaml
dpkg -P ${product}
test -d /opt
ours >/tmp/after
cmp /tmp/before /tmp/after
cat /tmp/asked
`);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(printed).toContain(`${nodeAgent} ${VERSION}`);
    expect(printed).toContain('"supportedVersions"');
    expect(printed).not.toContain("systemctl");
  });

  testInstallation("starts, restarts and stops the agent where systemd runs", () => {
    const { code, printed } = onCopyOfHost(`
mkdir -p /run/systemd/system
for step in "-i /packages/first.deb" "-i /packages/newer.deb" "-r ${product}"; do
  dpkg $step >/dev/null
  echo "after $step: $(grep -oE "(start|restart|stop) ${nodeAgent}" /tmp/asked | tr '\\n' ',')"
  : >/tmp/asked
done
`);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(printed).toContain(`first.deb: start ${nodeAgent},\n`);
    expect(printed).toContain(`newer.deb: restart ${nodeAgent},\n`);
    expect(printed).toContain(`-r ${product}: stop ${nodeAgent},\n`);
  });

  testInstallation("refuses to overwrite a plugin that belongs to no package, and keeps changed settings", () => {
    const { code, printed } = onCopyOfHost(`
mkdir -p ${BIN_DIRECTORY}
echo theirs >${BIN_DIRECTORY}/portmap
if dpkg -i /packages/first.deb; then exit 1; fi
cat ${BIN_DIRECTORY}/portmap
rm ${BIN_DIRECTORY}/portmap
dpkg -i /packages/first.deb
echo "datastoreType: embedded" >${configDirectory}/${adminTool}.yaml
dpkg -i /packages/newer.deb
cat ${configDirectory}/${adminTool}.yaml
`);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(printed).toContain(`${BIN_DIRECTORY}/portmap exists and belongs to no package`);
    expect(printed).toContain("\ntheirs\n");
    expect(printed).toEndWith("datastoreType: embedded\n");
  });

  testInstallation("refuses to configure an executable that is setuid", () => {
    const { code, printed } = onCopyOfHost(`
dpkg-statoverride --add root root 4755 ${BIN_DIRECTORY}/${product}
if dpkg -i /packages/first.deb; then exit 1; fi
`);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(printed).toContain("has a setuid or setgid bit");
  });
});
