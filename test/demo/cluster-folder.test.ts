/** What `make cluster` and `make cluster-down` do, as root, with the folder that CLUSTER_FOLDER names. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { checkFolder, makeFolder, removeFolder } from "../../scripts/cluster/folder.ts";
import { root, testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const parent = temporaryDirectory("cluster-folder");
afterAll(() => parent.remove());

const STATE = JSON.stringify({ keeper: { boot: "", pid: 0, started: "" } });
let made = 0;

/** `files`: names and texts. */
function folderWith(files: Readonly<Record<string, string>>, mode = 0o700): string {
  made += 1;
  const folder = join(parent.path, String(made));
  mkdirSync(folder);
  chmodSync(folder, mode);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
  return folder;
}

function down(folder: string, cwd = parent.path) {
  const script = join(import.meta.dir, "../../scripts/cluster.ts");
  const env = { ...process.env, CLUSTER_FOLDER: folder };
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, script, "down"], { cwd, env, stdin: "ignore" });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

describe("the folder of a cluster", () => {
  test.each([
    ["has files of others", { "a.txt": "" }, "is not empty and has no state.json of make cluster"],
    ["has the state of another program", { "state.json": '{"version": 4}' }, "state.json is not of make cluster"],
    ["has a state that is cut off", { "state.json": '{"keeper"' }, "state.json is not of make cluster"],
    ["names processes by other than numbers", { "state.json": STATE.replace("0", "-1") }, "is not of make cluster"],
  ])("is refused if it %s", (_, files, problem) => {
    const folder = folderWith(files);

    expect(() => checkFolder(folder)).toThrow(`Cannot use CLUSTER_FOLDER "${folder}": `);
    expect(() => checkFolder(folder)).toThrow(problem);
  });

  test("is refused if others can write to it, to its files or beside it", () => {
    const [groups, everybodys, open] = [0o770, 0o707, 0o777].map((mode) => folderWith({ "state.json": STATE }, mode));
    const ours = folderWith({ "state.json": STATE });
    chmodSync(join(ours, "state.json"), 0o666);

    for (const folder of [groups, everybodys, ours]) {
      expect(() => checkFolder(folder ?? "")).toThrow("others can write to");
    }
    expect(() => checkFolder(join(open ?? "", "second"))).toThrow("everybody can write to");
  });

  test("is refused if it, or a file of it, is a link", () => {
    const target = folderWith({ "state.json": STATE });
    const link = join(parent.path, "link");
    symlinkSync(target, link);
    const linking = folderWith({});
    symlinkSync(join(target, "state.json"), join(linking, "state.json"));

    expect(() => checkFolder(link)).toThrow("is not a folder");
    expect(() => checkFolder(linking)).toThrow("is a link");
  });

  testNeeding(root)("is refused if it, or its state, is another user's", () => {
    const [folder, state] = [folderWith({ "state.json": STATE }), folderWith({ "state.json": STATE })];
    chownSync(folder, 65534, 65534);
    chownSync(join(state, "state.json"), 65534, 65534);

    expect(() => checkFolder(folder)).toThrow("user 65534 owns");
    expect(() => checkFolder(state)).toThrow("user 65534 owns");
  });

  test("is made for its owner alone, and used again if it is ours or empty", () => {
    const folder = join(parent.path, "made", "second");
    makeFolder(folder);
    makeFolder(folder);
    writeFileSync(join(folder, "state.json"), STATE);
    checkFolder(folder);

    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test("is removed with what is ours, and stays with what is not", () => {
    const [ours, mixed] = [folderWith({ "state.json": STATE, log: "" }), folderWith({ "state.json": STATE, own: "" })];
    for (const folder of [ours, mixed]) {
      mkdirSync(join(folder, "tmp/vt-kube"), { recursive: true });
      removeFolder(folder);
    }

    expect(existsSync(ours)).toBe(false);
    expect(readdirSync(mixed)).toEqual(["own"]);
  });

  testNeeding(root)("is left alone by make cluster-down if it is not ours", () => {
    const folder = folderWith({ "a.txt": "" });

    expect(down(folder)).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Cannot use CLUSTER_FOLDER ".*\n$/) });
    expect(readdirSync(folder)).toEqual(["a.txt"]);
  });

  testNeeding(root)("may be relative, and no process that only reads its files ends with it", () => {
    const folder = folderWith({ "state.json": STATE });
    const log = join(folder, "tmp/vt-kube-1/log");
    mkdirSync(join(log, ".."), { recursive: true });
    writeFileSync(log, "");
    const reader = Bun.spawn(["tail", "-f", log], { stdout: "ignore", stderr: "ignore" });

    expect(down(`${folder.split("/").at(-1)}`)).toMatchObject({ code: 0, stderr: "" });
    expect([existsSync(folder), reader.exitCode, reader.signalCode]).toEqual([false, null, null]);
    reader.kill();
  });
});
