import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TemporaryDirectory, temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { onCrashPoint } from "../../effect.ts";
import { identity } from "../../identity.ts";
import { knownEntries } from "./known-entries.ts";
import {
  type InstalledEntry,
  kubeconfigPath,
  networkListEntry,
  networkListPath,
  programEntries,
  readableEntry,
  secretEntry,
} from "./layout.ts";
import { NodeFiles } from "./node-files.ts";

const PRODUCT = identity.product;

let directory: TemporaryDirectory;
let root: string;
const at = (path: string) => join(root, path);
const open = () => new NodeFiles(at("state"));

beforeEach(() => {
  // In memory: every file is flushed to its disk.
  directory = temporaryDirectory("install", existsSync("/dev/shm") ? "/dev/shm" : undefined);
  root = directory.path;
  writeFileSync(at("program"), "release 1");
});
afterEach(() => {
  onCrashPoint(() => {});
  directory.remove();
});

function entries(token = "token 1", list = "{}"): readonly InstalledEntry[] {
  const names = [PRODUCT, "portmap", "bandwidth"];
  return [
    readableEntry(at("etc/manager.conf"), "leave ours alone"),
    ...programEntries(at("bin"), { executable: at("program"), names }),
    secretEntry(at("net.d/kubeconfig"), token),
    networkListEntry(at("net.d/10-own.conflist"), list),
  ];
}

/** Every path below the root with its kind, mode and content. */
function tree(path = root): string[] {
  return readdirSync(path)
    .sort()
    .flatMap((name) => {
      const full = join(path, name);
      const status = lstatSync(full);
      const shown = full.slice(root.length);
      if (status.isDirectory()) return [shown, ...tree(full)];
      if (status.isSymbolicLink()) return [`${shown} -> ${readlinkSync(full)}`];
      return [`${shown} ${(status.mode & 0o777).toString(8)} ${readFileSync(full, "utf8")}`];
    });
}

/** Somebody else's plugins: a file and a link. */
function otherPlugins(): void {
  mkdirSync(at("bin"));
  writeFileSync(at("bin/portmap"), "portmap of others", { mode: 0o750 });
  symlinkSync("portmap", at("bin/bandwidth"));
  writeFileSync(at("bin/loopback"), "loopback", { mode: 0o755 });
}

describe("NodeFiles.install()", () => {
  test("writes everything with its mode, and nothing the second time", () => {
    const { changed } = open().install(entries());
    expect(changed).toEqual(entries().map(({ path }) => path));
    expect(tree().filter((line) => !line.startsWith("/state"))).toEqual([
      "/bin",
      `/bin/bandwidth -> ${PRODUCT}`,
      `/bin/portmap -> ${PRODUCT}`,
      `/bin/${PRODUCT} 755 release 1`,
      "/etc",
      "/etc/manager.conf 644 leave ours alone",
      "/net.d",
      "/net.d/10-own.conflist 600 {}",
      "/net.d/kubeconfig 600 token 1",
      "/program 644 release 1",
    ]);

    const before = lstatSync(at(`bin/${PRODUCT}`)).ino;
    expect(open().install(entries())).toEqual({ changed: [], notes: [] });
    expect(lstatSync(at(`bin/${PRODUCT}`)).ino).toBe(before);
  });

  test("replaces what differs, in its content or in its mode", () => {
    open().install(entries());
    writeFileSync(at("program"), "release 2");
    chmodSync(at("net.d/kubeconfig"), 0o666);

    expect(open().install(entries()).changed).toEqual([at(`bin/${PRODUCT}`), at("net.d/kubeconfig")]);
    expect(readFileSync(at(`bin/${PRODUCT}`), "utf8")).toBe("release 2");
    expect(lstatSync(at("net.d/kubeconfig")).mode & 0o777).toBe(0o600);
  });

  test("removes what is not wanted any more", () => {
    open().install(entries());
    const { changed } = open().install(entries().slice(0, -2));

    expect(changed).toEqual([at("net.d/10-own.conflist"), at("net.d/kubeconfig")]);
    expect(existsSync(at("net.d/10-own.conflist"))).toBe(false);
  });

  test("refuses a directory in the place of a file before it changes anything", () => {
    mkdirSync(at("net.d/10-own.conflist"), { recursive: true });
    const before = tree();

    expect(() => open().install(entries())).toThrow("a directory or a device has this name");
    expect(tree()).toEqual(before);
  });

  test("keeps its own files if its record is damaged", () => {
    open().install(entries());
    writeFileSync(at("state/installed.json"), "{");

    expect(open().install(entries("token 2")).notes.join()).toContain("is damaged");
    expect(existsSync(at("state/replaced"))).toBe(false);
    open().uninstall();
    expect(existsSync(at(`bin/${PRODUCT}`))).toBe(false);
  });
});

describe("NodeFiles.uninstall()", () => {
  test("removes the files at the known paths if its record is damaged", () => {
    const configDirectory = at("net.d");
    const programs = { executable: at("program"), names: [PRODUCT, "portmap", "bandwidth"] };
    const known = () => knownEntries({ binDirectory: at("bin"), configDirectory, etcdFiles: ["etcd-key"], programs });
    otherPlugins();
    open().install([
      ...programEntries(at("bin"), programs),
      secretEntry(kubeconfigPath(configDirectory), "token 1"),
      networkListEntry(networkListPath(configDirectory), "{}"),
    ]);
    writeFileSync(at("state/installed.json"), "{");

    const { changed, notes } = open().uninstall(known);
    expect(notes.join()).toContain("is damaged");
    expect(changed).toContain(networkListPath(configDirectory));
    expect(readdirSync(configDirectory)).toEqual([]);
    expect(readdirSync(at("bin")).sort()).toEqual(["bandwidth", "loopback", "portmap"]);
    expect(readFileSync(at("bin/portmap"), "utf8")).toBe("portmap of others");
  });

  test("leaves a node as it was before", () => {
    otherPlugins();
    const before = tree();
    const { notes } = open().install(entries());
    expect(notes).toHaveLength(2);
    open().install(entries("token 2", '{"changed":true}'));
    open().uninstall();

    expect(tree().filter((line) => line !== "/state")).toEqual(before);
    expect(open().uninstall()).toEqual({ notes: [], changed: [] });
  });

  test("starts with the network config, and removes the kubeconfig whatever is in it", () => {
    open().install(entries());
    writeFileSync(at("net.d/kubeconfig"), "renewed");

    expect(open().uninstall().changed.slice(0, 3)).toEqual([
      at("net.d/10-own.conflist"),
      at("net.d/kubeconfig"),
      at("bin/bandwidth"),
    ]);
    expect(existsSync(at("net.d"))).toBe(false);
  });

  test("leaves a plugin that others have replaced since", () => {
    otherPlugins();
    open().install(entries());
    rmSync(at("bin/portmap"));
    writeFileSync(at("bin/portmap"), "newer portmap of others");

    expect(open().uninstall().notes.join()).toContain("is left: it was changed");
    expect(readFileSync(at("bin/portmap"), "utf8")).toBe("newer portmap of others");
    expect(existsSync(at("state/replaced"))).toBe(false);
  });

  test("keeps a newer plugin of others that an installation has replaced", () => {
    otherPlugins();
    open().install(entries());
    rmSync(at("bin/portmap"));
    writeFileSync(at("bin/portmap"), "newer portmap of others");
    open().install(entries());
    open().uninstall();

    expect(readFileSync(at("bin/portmap"), "utf8")).toBe("newer portmap of others");
  });

  test("keeps a copy of a network config that was changed by hand", () => {
    open().install(entries());
    writeFileSync(at("net.d/10-own.conflist"), "by hand");
    open().uninstall();

    expect(existsSync(at("net.d/10-own.conflist"))).toBe(false);
    expect(readFileSync(at(`state/changed${at("net.d/10-own.conflist")}`), "utf8")).toBe("by hand");
  });
});

describe("an installation that is killed at any point", () => {
  Reflect.set(globalThis, "FAULTS", true);

  /** Returns whether the work was stopped at that point. */
  function stopped(point: number, work: () => void): boolean {
    let passed = 0;
    let isStopped = false;
    onCrashPoint(() => {
      passed += 1;
      if (passed === point || isStopped) {
        isStopped = true;
        throw new Error("killed");
      }
    });
    try {
      work();
    } catch (failure) {
      if (!isStopped) throw failure;
    }
    onCrashPoint(() => {});
    return isStopped;
  }

  /** A node on which others' plugins are, with an earlier release or none. */
  function prepare(isUpgrade: boolean): string[] {
    for (const name of readdirSync(root)) rmSync(at(name), { recursive: true });
    writeFileSync(at("program"), "release 1");
    otherPlugins();
    const before = tree();
    if (isUpgrade) {
      open().install(entries());
      writeFileSync(at("program"), "release 2");
    }
    return before;
  }

  const withoutState = () => tree().filter((line) => !line.startsWith("/state") && !line.startsWith("/program"));

  for (const isUpgrade of [false, true]) {
    test(`is finished by the next one, or undone (${isUpgrade ? "upgrade" : "first"})`, () => {
      prepare(isUpgrade);
      open().install(entries("token 2"));
      const whole = tree();
      let points = 0;
      for (let point = 1, isStopped = true; isStopped; point += 1) {
        const before = prepare(isUpgrade);
        isStopped = stopped(point, () => void open().install(entries("token 2")));
        writeFileSync(at(`bin/${PRODUCT}.new`), "half");
        const list = at("net.d/10-own.conflist");
        if (existsSync(list) && !isUpgrade) expect(readFileSync(at(`bin/${PRODUCT}`), "utf8")).toBe("release 1");
        open().install(entries("token 2"));
        rmSync(at(`bin/${PRODUCT}.new`), { force: true });
        expect(tree()).toEqual(whole);

        prepare(isUpgrade);
        stopped(point, () => void open().install(entries("token 2")));
        stopped(point, () => void open().uninstall());
        open().uninstall();
        const left = before.filter((line) => !line.startsWith("/program"));
        expect(withoutState()).toEqual(left);
        points += 1;
      }
      expect(points).toBeGreaterThan(isUpgrade ? 10 : 20);
    }, 60_000);
  }
});
