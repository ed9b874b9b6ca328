/**
 * The Debian package: what it holds, that it is reproducible, and that dpkg
 * installs, upgrades and removes it, on a copy of this host.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { dependencies } from "../../package.json";
import { buildPackage } from "../../scripts/deb/build-package.ts";
import { packageDocuments } from "../../scripts/deb/documents.ts";
import { programNames } from "../../src/bin/programs.ts";
import { type Identity, identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { CONTAINER_COMMANDS, onCopyOfHost } from "../support/copy-of-host.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { packageRequest } from "../support/package-request.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const { product, nodeAgent, adminTool, configDirectory, stateDirectory, logDirectory, runDirectory } = identity;
const { guardTable, natTable, hostPortTable } = identity;
const needs = [program("dpkg-deb"), program("tar")];
const testPackage = testNeeding(...needs);
const testInstallation = testNeeding(root, program("dpkg"), program("systemctl"), ...needs);

const networkNeeds = [root, program("dpkg"), program("systemctl"), program("ip"), program("nft"), ...needs];
const testNetwork = testNeeding(...networkNeeds);
const onlyInSoak = proofSize({ everyDay: "only in `make soak`", soak: undefined });

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

  testPackage("has manual pages, completion and documents, and names its maintainer", () => {
    const paths = print("dpkg-deb", "--contents", file).match(/ \.\/\S+$/gm) ?? [];
    const archive = Bun.spawnSync(["dpkg-deb", "--fsys-tarfile", file]).stdout;
    const contentOf = (path: string) => Bun.spawnSync(["tar", "-xO", `./${path}`], { stdin: archive }).stdout;
    for (const path of [
      `usr/share/doc/${product}/README.md`,
      `usr/share/doc/${product}/docs/host-install.md`,
      `usr/share/man/man8/${product}.8.gz`,
      `usr/share/man/man8/${nodeAgent}.8.gz`,
      `usr/share/bash-completion/completions/${adminTool}`,
      `usr/share/zsh/vendor-completions/_${adminTool}`,
      `usr/share/fish/vendor_completions.d/${adminTool}.fish`,
    ]) {
      expect(paths).toContain(` ./${path}`);
    }
    expect(print("dpkg-deb", "--field", file, "Maintainer")).toBe("Test <test@example.org>\n");
    const manual = contentOf(`usr/share/man/man1/${adminTool}.1.gz`);
    // As `gzip -9n` writes it: no name, no time, the best compression.
    expect([...manual.subarray(0, 9)]).toEqual([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2]);
    expect(gunzipSync(manual).toString()).toContain(`.SS "${adminTool} get `);
    const copyright = contentOf(`usr/share/doc/${product}/copyright`).toString();
    for (const name of Object.keys(dependencies)) {
      expect(copyright).toMatch(new RegExp(`^ ${name} [\\d.]+: [\\w-]+, Copyright \\S+`, "m"));
    }
    const changelog = gunzipSync(contentOf(`usr/share/doc/${product}/changelog.gz`)).toString();
    expect(changelog).toStartWith(`${product} (1.2.3) `);
    expect(changelog).toEndWith("\n -- Test <test@example.org>  Tue, 14 Nov 2023 22:13:20 +0000\n");
  });

  test("has no pages under other names, as these name the product", () => {
    const { version, maintainer, time } = REQUEST;
    const pathsOf = (names: Identity) =>
      packageDocuments({ names, version, maintainer, time }).map(({ path }) => path.split("/").slice(5).join("/"));

    expect(pathsOf({ ...identity, product: "other" })).toEqual(["copyright", "changelog.gz"]);
    expect(pathsOf(identity)).toContain("README.md");
  });

  testNeeding(onlyInSoak, ...needs)("is the same to the byte if it is built again, elsewhere, later", async () => {
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

const onCopy = (script: string) => onCopyOfHost(script, { "first.deb": file, "newer.deb": newer });

describe("dpkg with the package", () => {
  testInstallation("installs it without systemd; every name works; removing and purging leaves nothing", () => {
    const { code, printed } = onCopy(`
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
    const { code, printed } = onCopy(`
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
    const { code, printed } = onCopy(`
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
    const { code, printed } = onCopy(`
dpkg-statoverride --add root root 4755 ${BIN_DIRECTORY}/${product}
if dpkg -i /packages/first.deb; then exit 1; fi
`);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(printed).toContain("has a setuid or setgid bit");
  });
});

describe("dpkg with a network in use", () => {
  const INSTALLED = `${CONTAINER_COMMANDS}
dpkg -i /packages/first.deb >/dev/null
switch_on /usr
attach web 8080
attach db 8081
tables >/tmp/tables
cat /tmp/tables
`;
  const NOTHING_LEFT = `
ours >/tmp/after
diff /tmp/before /tmp/after
test -z "$(tables)"
test ! -e ${runDirectory}
`;

  testNetwork(
    "an upgrade changes nothing; a removal is refused, unless it is forced, and a purge after their end leaves nothing",
    () => {
      const { code, printed } = onCopy(`${INSTALLED}
find ${runDirectory}/ ${stateDirectory} | sort >/tmp/files
dpkg -i /packages/newer.deb >/dev/null
tables | diff /tmp/tables -
find ${runDirectory}/ ${stateDirectory} | sort | diff /tmp/files -
echo "upgraded with $(links) links"
if dpkg -r ${product}; then exit 1; fi
test -x ${BIN_DIRECTORY}/${product}
dpkg --verify ${product}
echo "refused with $(links) links"
FORCE=1 dpkg -r ${product}
tables | diff /tmp/tables -
echo "removed with $(links) links"
test ! -e ${BIN_DIRECTORY}/${product}
test -e ${stateDirectory}
test -e ${logDirectory}
end_container web
end_container db
dpkg -P ${product}
rm -r /etc/cni
${NOTHING_LEFT}
`);
      const [untilUpgrade = "", refusal = "", afterwards = ""] = printed.split(/(?:upgraded|refused) with 2 links\n/);

      expect({ code, printed }).toMatchObject({ code: 0 });
      expect(untilUpgrade.match(/^table .*$/gm)).toEqual([
        `table inet ${guardTable}`,
        `table inet ${natTable}`,
        `table ip ${hostPortTable}`,
      ]);
      expect(untilUpgrade).not.toContain(`${nodeAgent}:`);
      expect(refusal).toContain("Cannot remove the network of this host: 2 containers use it: db, web (");
      expect(refusal).toContain("not removed, since these containers would lose their plugin");
      expect(afterwards).toContain(`/etc/cni/net.d/10-${product}-embedded.conflist; delete them`);
      expect(afterwards).toContain("Cannot remove the network of this host: 2 containers use it: db, web (");
      expect(afterwards).toContain(`once no container uses it, "dpkg --purge ${product}" removes them`);
      expect(afterwards).toContain("\nremoved with 2 links\n");
      expect(afterwards).not.toContain("still use the network");
    },
  );

  testNeeding(onlyInSoak, ...networkNeeds)(
    "purges although containers run: they keep their network, and are named; in a chroot it is not touched",
    () => {
      const { code, printed } = onCopy(`${INSTALLED}
mkdir /tmp/other
mount --rbind / /tmp/other
cp /var/lib/dpkg/info/${product}.postrm /tmp/postrm
chroot /tmp/other /var/lib/dpkg/info/${product}.prerm remove
echo "not in the chroot"
FORCE=1 dpkg -P ${product}
tables | diff /tmp/tables -
test -e ${stateDirectory}
test ! -e ${logDirectory}
end_container web
end_container db
chroot /tmp/other sh /tmp/postrm purge
tables | diff /tmp/tables -
test -e ${runDirectory}
test ! -e ${stateDirectory}
`);
      const [before = "", after = ""] = printed.split("not in the chroot");

      expect({ code, printed }).toMatchObject({ code: 0 });
      expect(before).not.toContain("use it");
      expect(after).toContain("2 containers use it: db, web (");
      expect(after).toMatch(/ still use the network \(\w+ \w+\): /);
    },
  );

  testNetwork("removes the network that nobody uses, and keeps the datastore until the purge", () => {
    const { code, printed } = onCopy(`${INSTALLED}
detach web 8080
detach db 8081
rm -r /etc/cni
test -n "$(tables)"
dpkg -r ${product}
test -z "$(tables)"
test ! -e ${runDirectory}
test -e ${stateDirectory}
dpkg -P ${product}
${NOTHING_LEFT}
`);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(printed).toContain("Removed tunnels, routes and rules");
    expect(printed).not.toContain("conflist");
  });
});
