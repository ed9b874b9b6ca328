import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { PodSocket } from "../feed/pod-socket.ts";
import { SyncVolumes } from "./sync-volumes.ts";

let directory: ReturnType<typeof temporaryDirectory>;
const at = (...names: readonly string[]) => join(directory.path, ...names);
beforeEach(() => {
  directory = temporaryDirectory("policysync");
});
afterEach(() => directory.remove());

/** As a FlexVolume (the ID is the UID) or a CSI driver leaves it. */
function put(id: string, record: object | string): void {
  for (const name of ["creds", `mount/${id}`]) mkdirSync(at(name), { recursive: true });
  writeFileSync(at("creds", `${id}.json`), typeof record === "string" ? record : JSON.stringify(record));
}

const podOf = (UID: string) => ({ UID, Workload: "web", Namespace: "shop", ServiceAccount: "default" });

let problems: string[] = [];
beforeEach(() => {
  problems = [];
});
const volumesIn = (root: string) => new SyncVolumes(root, (problem) => problems.push(problem));

describe("SyncVolumes", () => {
  test("finds the pods that are there, and those that come; tells when one has gone, and removes its directory", () => {
    put("uid-1", podOf("uid-1"));
    const volumes = volumesIn(directory.path);
    let changes = 0;
    volumes.follow(() => {
      changes += 1;
    });
    put("csi-0a", podOf("uid-2"));
    volumes.refresh();
    volumes.refresh();

    const expected = { namespace: "shop", pod: "web" };
    expect([...volumes.all.values()]).toEqual([
      { ...expected, uid: "uid-2", directory: at("mount", "csi-0a") },
      { ...expected, uid: "uid-1", directory: at("mount", "uid-1") },
    ]);
    expect([...volumes.recovered]).toEqual(["uid-1"]);
    rmSync(at("creds", "uid-1.json"));
    volumes.refresh();
    expect([changes, [...volumes.all.keys()], existsSync(at("mount", "uid-1"))]).toEqual([2, ["uid-2"], false]);
    rmSync(at("creds"), { recursive: true });
    expect([volumes.refresh(), volumes.all.size, changes]).toEqual([false, 0, 3]);
  });

  test("leaves out records that are not complete, and directories that are missing or links", () => {
    put("half", '{"UID":"ha');
    put("other", { UID: "other", Namespace: "shop" });
    put("gone", podOf("gone"));
    put("link", podOf("link"));
    for (const name of ["gone", "link"]) rmSync(at("mount", name), { recursive: true });
    symlinkSync("/etc", at("mount", "link"));

    expect([...volumesIn(directory.path).all]).toEqual([]);
    expect(volumesIn(at("none")).refresh()).toBe(false);
    expect(problems).toEqual([]);
  });

  test("what cannot be read is not gone: its pod is served, its directory stays, and the problem is reported once", () => {
    put("uid-1", podOf("uid-1"));
    const volumes = volumesIn(directory.path);
    let changes = 0;
    volumes.follow(() => {
      changes += 1;
    });
    rmSync(at("creds", "uid-1.json"));
    mkdirSync(at("creds", "uid-1.json"));
    volumes.refresh();
    volumes.refresh();
    expect([changes, [...volumes.all.keys()], existsSync(at("mount", "uid-1"))]).toEqual([0, ["uid-1"], true]);
    expect(problems).toEqual([expect.stringContaining(JSON.stringify(at("creds", "uid-1.json")))]);
    renameSync(at("creds"), at("before"));
    writeFileSync(at("creds"), "");
    expect([volumes.refresh(), volumes.all.size, changes]).toEqual([true, 1, 0]);
    expect(problems[1]).toContain(JSON.stringify(at("creds")));
    rmSync(at("creds"));
    expect([volumes.refresh(), volumes.all.size, existsSync(at("mount", "uid-1"))]).toEqual([false, 0, false]);
  });

  test("a pod whose directory has gone, and whose record has not, is not served; it is again when there is one", () => {
    put("uid-1", podOf("uid-1"));
    const volumes = volumesIn(directory.path);
    renameSync(at("mount", "uid-1"), at("elsewhere"));
    volumes.refresh();
    expect(volumes.all.size).toBe(0);
    mkdirSync(at("mount", "uid-1"));
    volumes.refresh();
    expect([...volumes.all.keys()]).toEqual(["uid-1"]);
    writeFileSync(at("creds", "uid-1.json"), "{");
    volumes.refresh();
    expect([...volumes.all.keys()]).toEqual(["uid-1"]);
  });
});

const nothing = () => {};
const MEANS = {
  ...{ version: "2.0.0", elapsed: () => 0, report: nothing },
  ...{ refused: nothing, greeted: nothing, applied: nothing, closed: nothing },
};

describe("PodSocket of an earlier release", () => {
  test("a socket that a pod puts in its place is replaced, and one that is another's stays when it is closed", () => {
    put("uid-1", podOf("uid-1"));
    const [volume] = volumesIn(directory.path).all.values();
    if (volume === undefined) throw new Error("no volume");
    const path = at("mount", "uid-1", "socket");
    const [socket, next] = [new PodSocket(volume, MEANS), new PodSocket(volume, MEANS)];
    const inode = () => statSync(path).ino;
    socket.listen();
    rmSync(path);
    const other = Bun.listen({ unix: path, socket: { data: nothing } });
    const foreign = inode();
    socket.listen();
    expect(inode()).not.toBe(foreign);
    const again = inode();
    socket.listen();
    expect(inode()).toBe(again);
    next.listen();
    const last = inode();
    socket.close();
    expect(inode()).toBe(last);
    next.close();
    expect(existsSync(path)).toBe(false);
    other.stop();
  });

  test("what a pod puts in place of its socket is replaced, and what that leads to stays as it is", () => {
    put("uid-1", podOf("uid-1"));
    writeFileSync(at("secret"), "");
    chmodSync(at("secret"), 0o600);
    symlinkSync(at("secret"), at("mount", "uid-1", "socket"));
    const [volume] = volumesIn(directory.path).all.values();
    if (volume === undefined) throw new Error("no volume");
    const socket = new PodSocket(volume, MEANS);
    socket.listen();

    expect(statSync(at("mount", "uid-1", "socket")).mode & 0o777).toBe(0o777);
    expect(statSync(at("secret")).mode & 0o777).toBe(0o600);
    socket.close();
    expect(existsSync(at("mount", "uid-1", "socket"))).toBe(false);
    expect(existsSync(at("secret"))).toBe(true);
  });
});
