import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { readCniHost } from "./read-cni-host.ts";

const LIBRARY = "\0github.com/containernetworking/cni/libcni\0";

/** A directory tree with these files, all of them programs. */
function rootWith(files: Readonly<Record<string, string>>): string {
  const { path } = temporaryDirectory("cni-host");
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
    chmodSync(join(path, name), 0o755);
  }
  return path;
}

describe("readCniHost()", () => {
  test("finds in a runtime which CNI versions it knows", () => {
    const root = rootWith({
      "usr/bin/podman": `${LIBRARY}github.com/containernetworking/cni/pkg/types/100\0`,
      "usr/bin/containerd": `${LIBRARY}github.com/containernetworking/cni/pkg/types/100\0"cniVersions"`,
      "usr/bin/crio": LIBRARY,
    });

    expect(readCniHost({}, root).runtimes).toEqual([
      { name: "podman", readsSeveralVersions: false, newestVersion: "1.0.0" },
      { name: "containerd", readsSeveralVersions: true, newestVersion: "1.1.0" },
      { name: "crio", readsSeveralVersions: false, newestVersion: "0.4.0" },
    ]);
  });

  test("ignores a runtime that does not use CNI", () => {
    expect(readCniHost({}, rootWith({ "usr/bin/podman": "netavark" })).runtimes).toEqual([]);
  });

  test("finds plugins in CNI_PATH, in the directories that runtimes are configured with, and in the usual ones", () => {
    const root = rootWith({
      "etc/containers/containers.conf.d/10-cni.conf":
        '[network]\nnetwork_backend = "cni"\ncni_plugin_dirs = ["/srv/podman"]\n',
      "etc/containerd/config.toml":
        'version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\n  bin_dir = "/srv/containerd"\n  conf_dir = "/etc/cni/net.d"\n',
      "etc/crio/crio.conf": "not [ TOML",
      "srv/podman/a": "",
      "srv/containerd/b": "",
      "own/c": "",
      "opt/cni/bin/d": "",
      "usr/lib/other/e": "",
    });
    const { pluginDirectories, plugins } = readCniHost({ CNI_PATH: "/own:/no/such" }, root);

    expect(pluginDirectories).toEqual(["/own", "/srv/podman", "/srv/containerd", "/opt/cni/bin"]);
    expect([...plugins].sort()).toEqual(["a", "b", "c", "d"]);
  });

  test("follows the imports of containerd, the settings of the user, and the trees of k3s and MicroK8s", () => {
    const bin = (path: string) => `[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "${path}"\n`;
    const podman = (path: string) => `[network]\ncni_plugin_dirs = ["${path}"]\n`;
    const root = rootWith({
      "etc/containerd/config.toml": `imports = ["conf.d/*.toml", "/srv/more.toml", "/no/such.toml"]\n${bin("/1")}`,
      "etc/containerd/conf.d/a.toml": `imports = ["../config.toml"]\n${bin("/2")}`,
      "etc/containerd/conf.d/a.other": bin("/not"),
      "srv/more.toml": bin("/3"),
      "home/u/.config/containers/containers.conf": podman("/4"),
      "home/u/podman.conf": podman("/5"),
      "var/lib/rancher/k3s/agent/etc/containerd/config.toml": bin("/6"),
      "var/snap/microk8s/current/opt/cni/bin/p": "",
      ...Object.fromEntries(["1", "2", "3", "4", "5", "6", "not"].map((name) => [`${name}/plugin`, ""])),
    });
    const { pluginDirectories, unreadable } = readCniHost(
      { HOME: "/home/u", CONTAINERS_CONF: "/home/u/podman.conf" },
      root,
    );

    expect([...pluginDirectories].sort()).toEqual([
      ...["/1", "/2", "/3", "/4", "/5", "/6"],
      "/var/snap/microk8s/current/opt/cni/bin",
    ]);
    expect(unreadable).toEqual([]);
  });

  test.each([
    ["netavark in the settings", { "etc/containers/containers.conf": '[network]\nnetwork_backend = "netavark"\n' }, []],
    ["CNI in the settings", { "etc/containers/containers.conf": '[network]\nnetwork_backend = "cni"\n' }, ["podman"]],
    ["netavark by its own choice", { "var/lib/containers/storage/defaultNetworkBackend": "netavark" }, []],
    [
      "CNI in the last settings",
      {
        "usr/share/containers/containers.conf": '[network]\nnetwork_backend = "netavark"\n',
        "etc/containers/containers.conf.d/cni.conf": '[network]\nnetwork_backend = "cni"\n',
        "var/lib/containers/storage/defaultNetworkBackend": "netavark",
      },
      ["podman"],
    ],
  ])("judges podman only if it uses CNI: %s", (_, files, names) => {
    const root = rootWith({ "usr/bin/podman": LIBRARY, ...files });

    expect(readCniHost({}, root).runtimes.map(({ name }) => name)).toEqual(names as string[]);
  });

  test("tells what cannot be read from what does not exist", () => {
    const root = rootWith({
      "opt/cni/bin/a": "",
      "etc/crio/crio.conf": "not [ TOML",
      "usr/lib/cni": "a file",
      "etc/containerd/beside": "",
    });
    mkdirSync(join(root, "usr/libexec"), { recursive: true });
    // A loop cannot be read by root either.
    symlinkSync("cni", join(root, "usr/libexec/cni"));
    symlinkSync("config.toml", join(root, "etc/containerd/config.toml"));
    // Says nothing about plugins, and only root may read it.
    mkdirSync(join(root, "var/lib/containers/storage"), { recursive: true });
    symlinkSync("defaultNetworkBackend", join(root, "var/lib/containers/storage/defaultNetworkBackend"));
    const { pluginDirectories, unreadable } = readCniHost({}, root);

    expect(pluginDirectories).toEqual(["/opt/cni/bin"]);
    expect(unreadable).toEqual(["/etc/containerd/config.toml", "/etc/crio/crio.conf", "/usr/libexec/cni"]);
  });

  const podman = Bun.spawnSync(["sh", "-c", "podman --version"]).stdout.toString();
  test.if(podman.includes("podman version 4."))("knows the real podman 4: no cniVersions, and not 1.1.0", () => {
    expect(readCniHost(process.env).runtimes).toContainEqual({
      name: "podman",
      readsSeveralVersions: false,
      newestVersion: "1.0.0",
    });
  });
});
