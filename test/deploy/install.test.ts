/** `make install` and `make uninstall`, below a temporary DESTDIR: nothing of others is lost, nothing of ours is left. */
import { afterEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { programNames } from "../../src/bin/programs.ts";
import { identity } from "../../src/identity.ts";
import { CONTAINER_COMMANDS, onCopyOfHost } from "../support/copy-of-host.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

const { product, nodeAgent, adminTool, configDirectory, stateDirectory, logDirectory } = identity;
const SCRIPT = join(import.meta.dir, "../../scripts/install.ts");
const EXECUTABLE = join(BIN_DIRECTORY, product);
const SETTINGS = join(configDirectory, `${adminTool}.yaml`);

/** A build in small: a script that says the name it was called by. */
const PROGRAM = `#!/bin/sh\necho "called as \${0##*/}"\n`;

const opened: TemporaryDirectory[] = [];
afterEach(() => {
  for (const directory of opened.splice(0)) directory.remove();
});

function openSite() {
  const directory = temporaryDirectory("install");
  opened.push(directory);
  chmodSync(directory.path, 0o755);
  const at = (path: string) => join(directory.path, "root", path);
  const build = join(directory.path, "dist/bin", product);
  mkdirSync(dirname(build), { recursive: true });
  writeFileSync(build, PROGRAM, { mode: 0o755 });
  const write = (path: string, content: string, mode = 0o755) => {
    mkdirSync(dirname(at(path)), { recursive: true });
    writeFileSync(at(path), content);
    chmodSync(at(path), mode);
  };
  const run = (before: readonly string[], options: readonly string[]) => {
    const places = ["--destdir", at(""), "--out", join(directory.path, "dist")];
    const command = ["sh", "-c", 'umask 077; exec "$@"', "sh", process.execPath, SCRIPT, ...places, ...options];
    const { exitCode, stdout, stderr } = Bun.spawnSync([...before, ...command], {
      cwd: join(import.meta.dir, "../.."),
    });
    return { code: exitCode, printed: `${stdout}${stderr}` };
  };
  const make = (...options: readonly string[]) => run([], options);
  const makeAs = (before: readonly string[]) => run(before, []);
  return { at, build, write, make, makeAs };
}

/** Every path below a folder, with its kind, mode and content. */
function contentOf(folder: string, path = ""): readonly string[] {
  const status = lstatSync(join(folder, path), { throwIfNoEntry: false });
  if (status === undefined) return [];
  const mode = (status.mode & 0o7777).toString(8);
  if (status.isSymbolicLink()) return [`${path} -> ${readlinkSync(join(folder, path))}`];
  if (status.isFile()) return [`${path} ${mode} ${Bun.hash(readFileSync(join(folder, path)))}`];
  const names = readdirSync(join(folder, path)).sort();
  return [`${path}/ ${mode}`, ...names.flatMap((name) => contentOf(folder, `${path}/${name}`))];
}

describe("make install", () => {
  test("installs the executable once, its names, the unit, example configs and settings, whatever the umask is", () => {
    const { at, make } = openSite();

    expect(make()).toMatchObject({ code: 0 });
    const files = contentOf(at("")).filter((line) => !line.includes(" -> ") && !line.split(" ")[0]?.endsWith("/"));
    expect(files.map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual([
      `${SETTINGS} 644`,
      `${EXECUTABLE} 755`,
      `/usr/local/lib/systemd/system/${nodeAgent}.service 644`,
      `/usr/local/share/bash-completion/completions/${adminTool} 644`,
      `/usr/local/share/fish/vendor_completions.d/${adminTool}.fish 644`,
      `/usr/local/share/man/man1/${adminTool}.1.gz 644`,
      `/usr/local/share/man/man8/${nodeAgent}.8.gz 644`,
      `/usr/local/share/man/man8/${product}.8.gz 644`,
      `/usr/local/share/${product}/10-${product}-embedded.conflist 644`,
      `/usr/local/share/${product}/10-${product}.conflist 644`,
      `/usr/local/share/${product}/installed.json 644`,
      `/usr/local/share/zsh/site-functions/_${adminTool} 644`,
    ]);
    expect(statSync(at("/opt")).mode & 0o777).toBe(0o755);
    for (const name of Object.values(programNames(identity))) {
      const { stdout } = Bun.spawnSync([at(join(BIN_DIRECTORY, name))]);
      expect(stdout.toString()).toBe(`called as ${name}\n`);
    }
    expect(readlinkSync(at(`/usr/local/bin/${adminTool}`))).toBe(join(BIN_DIRECTORY, adminTool));
    expect(readlinkSync(at(`/usr/local/sbin/${nodeAgent}`))).toBe(join(BIN_DIRECTORY, nodeAgent));
  });

  test("takes PREFIX and CNI_BIN_DIR, and the unit starts the agent from there", () => {
    const { at, make } = openSite();

    expect(make("--prefix", "/usr", "--cni-bin-dir", "/usr/libexec/cni")).toMatchObject({ code: 0 });
    const unit = readFileSync(at(`/usr/lib/systemd/system/${nodeAgent}.service`), "utf8");
    expect(unit).toContain(`ExecStart=/usr/libexec/cni/${nodeAgent}\n`);
    expect(readdirSync(at("")).sort()).toEqual(["etc", "usr"]);
    for (const prefix of ["usr", "/a b"]) {
      expect(make("--prefix", prefix)).toMatchObject({ code: 1, printed: expect.stringContaining("PREFIX") });
    }
  });

  test("replaces its own earlier installation, by files that are complete at any time", () => {
    const { at, build, make } = openSite();
    make();
    const before = statSync(at(EXECUTABLE)).ino;
    writeFileSync(build, `${PROGRAM}# newer\n`);

    expect(make()).toMatchObject({ code: 0 });
    expect(readFileSync(at(EXECUTABLE), "utf8")).toEndWith("# newer\n");
    expect(statSync(at(EXECUTABLE)).ino).not.toBe(before);
    expect(contentOf(at("")).filter((line) => line.includes(".new"))).toEqual([]);
  });

  test("refuses to overwrite the plugins of others, by name, and changes nothing", () => {
    const { at, write, make } = openSite();
    write(join(BIN_DIRECTORY, "portmap"), "theirs");
    write(join(BIN_DIRECTORY, "bandwidth"), "theirs");
    const before = contentOf(at(""));
    const { code, printed } = make();

    expect(code).toBe(1);
    expect(printed).toMatch(/portmap.*EXISTING=backup/);
    expect(printed).toContain("bandwidth");
    expect(contentOf(at(""))).toEqual(before);
  });

  test("keeps them aside if told so, and uninstalling puts them back", () => {
    const { at, write, make } = openSite();
    write(join(BIN_DIRECTORY, "portmap"), "theirs", 0o700);
    const before = contentOf(at(""));

    expect(make("--existing", "backup")).toMatchObject({
      code: 0,
      printed: expect.stringContaining(`portmap.before-${product}`),
    });
    expect(readlinkSync(at(join(BIN_DIRECTORY, "portmap")))).toBe(product);
    expect(make()).toMatchObject({ code: 0 });
    expect(make("--uninstall")).toMatchObject({ code: 0 });
    expect(contentOf(at(""))).toEqual(before);
  });

  test("notices that others have replaced a name since", () => {
    const { at, write, make } = openSite();
    make();
    rmSync(at(join(BIN_DIRECTORY, "portmap")));
    write(join(BIN_DIRECTORY, "portmap"), "theirs");

    expect(make()).toMatchObject({ code: 1, printed: expect.stringContaining("portmap") });
    expect(make("--uninstall")).toMatchObject({ code: 0, printed: expect.stringContaining("portmap is left") });
    expect(readFileSync(at(join(BIN_DIRECTORY, "portmap")), "utf8")).toBe("theirs");
  });

  test("refuses a build with a setuid bit, and keeps none of a file that it replaces", () => {
    const { at, build, write, make } = openSite();
    chmodSync(build, 0o4755);
    expect(make()).toMatchObject({ code: 1, printed: expect.stringContaining("setuid") });
    expect(contentOf(at(""))).toEqual([]);

    chmodSync(build, 0o755);
    copyFileSync(build, `${build}.copy`);
    write(EXECUTABLE, PROGRAM, 0o6755);
    expect(make()).toMatchObject({ code: 0 });
    expect(statSync(at(EXECUTABLE)).mode & 0o7777).toBe(0o755);
  });
});

describe("make install by a user without permission", () => {
  testNeeding(root, program("setpriv"))("says who may do it, in one line", () => {
    const { at, makeAs } = openSite();
    mkdirSync(at(""), { recursive: true });
    // May read everything: the clone may be in a directory that only root may enter.
    const reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"];
    const { code, printed } = makeAs(["setpriv", "--reuid=65534", "--clear-groups", ...reads, "--"]);

    expect(code).toBe(1);
    expect(printed).toMatch(/^make: .*run it as root, or give a DESTDIR.*\n$/);
  });
});

describe("make uninstall", () => {
  test("leaves nothing of an installation", () => {
    const { at, make } = openSite();
    mkdirSync(at(""), { recursive: true });
    const before = contentOf(at(""));
    make();

    expect(make("--uninstall")).toMatchObject({ code: 0 });
    expect(contentOf(at(""))).toEqual(before);
  });

  test("leaves what is not its own: folders, other plugins, changed settings", () => {
    const { at, write, make } = openSite();
    write(join(BIN_DIRECTORY, "bridge"), "theirs");
    make();
    write(SETTINGS, "datastoreType: embedded\n", 0o600);
    make();
    expect(readFileSync(at(SETTINGS), "utf8")).toBe("datastoreType: embedded\n");

    expect(make("--uninstall")).toMatchObject({ code: 0, printed: expect.stringContaining(`${SETTINGS} is left`) });
    const left = contentOf(at("")).filter((line) => !line.split(" ")[0]?.endsWith("/"));
    expect(left.map((line) => line.split(" ")[0])).toEqual([SETTINGS, join(BIN_DIRECTORY, "bridge")]);
  });

  test("says that it cannot read its record", () => {
    const { make, write } = openSite();
    write(`/usr/local/share/${product}/installed.json`, "{");

    for (const option of [[], ["--uninstall"]]) {
      expect(make(...option)).toMatchObject({ code: 1, printed: expect.stringMatching(/^make: .*it is not JSON/) });
    }
  });

  test("says that nothing is installed there", () => {
    const { make } = openSite();

    expect(make("--uninstall")).toMatchObject({ code: 1, printed: expect.stringContaining("PREFIX") });
  });
});

describe("make uninstall on the host itself", () => {
  testNeeding(
    root,
    program("ip"),
    program("nft"),
    program("systemctl"),
  )("refuses while a container uses the network, and names it; then leaves no table, and says what is left", () => {
    const install = `${process.execPath} scripts/install.ts`;
    const { code, printed } = onCopyOfHost(`${CONTAINER_COMMANDS}
export PATH=/usr/local/bin:$PATH
${install} --out dist >/dev/null
switch_on /usr/local
attach web 8080
mkdir -p /run/systemd/system
if ${install} --uninstall; then exit 1; fi
test -x ${EXECUTABLE}
test -n "$(tables)"
detach web 8080
rm -r /etc/cni
${install} --uninstall
test -z "$(tables)"
ours | diff /tmp/before - || true
`);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(printed).toMatch(/^make: .*conflist; delete them.*\n.*1 container uses it: web \(.*; FORCE=1 uninstalls/m);
    for (const directory of [stateDirectory, logDirectory]) expect(printed).toContain(`\n${directory} is left\n`);
    expect(printed.match(/^> .*$/gm)).toEqual([`> ${stateDirectory}`, `> ${logDirectory}`]);
  });

  testNeeding(
    root,
    program("ip"),
    program("systemctl"),
  )("stops the agent only if no container is named, and leaves that of another installation alone", () => {
    const unit = `/lib/systemd/system/${nodeAgent}.service`;
    const { code, printed } = onCopyOfHost(`
mkdir -p /run/systemd/system /tmp/small/bin
cat >/tmp/small/bin/${product} <<'end'
#!/bin/sh
echo "program" >>/tmp/asked
exit $(cat /tmp/code)
end
chmod 755 /tmp/small/bin/${product}
: >/tmp/active
make() {
  echo "== $*"
  : >/tmp/asked
  echo $1 >/tmp/code
  echo $2${unit} >/tmp/fragment
  shift 2
  ${process.execPath} scripts/install.ts --out /tmp/small >/dev/null
  if ${process.execPath} scripts/install.ts --uninstall "$@"; then echo done; else echo refused; fi
  sed 's/ ${nodeAgent}.service//' /tmp/asked
}
make 3 /usr/local
make 1 /usr/local --force
make 0 /usr
make 3 /usr/local --force
make 0 /usr/local
`);
    const [, named, failing, others, forced, free] = printed.split(/^== .*$/m);

    expect({ code, printed }).toMatchObject({ code: 0 });
    expect(named).toEndWith("tables, routes and tunnels\nrefused\nprogram\n");
    expect(failing).toEndWith("refused\nprogram\nsystemctl stop\nprogram\nsystemctl start\n");
    expect(failing).not.toContain("FORCE");
    expect(others).toContain(
      `the network and its agent are left: they are of another installation, whose unit is /usr${unit}`,
    );
    expect(others).toEndWith("done\n");
    expect(forced).toEndWith("done\nprogram\nsystemctl stop\nprogram\n");
    expect(free).toEndWith("done\nprogram\n");
  });
});
