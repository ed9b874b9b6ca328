import { describe, expect, test } from "bun:test";
import { identity } from "../identity.ts";
import { findInstalledNetwork, isForAgentOnly } from "./installed-network.ts";

const DIRECTORY = "/etc/cni/net.d";
const AGENT_FILE = `${identity.stateDirectory}/agent.conflist`;
const OWN = JSON.stringify({
  name: "pods",
  cniVersion: "1.0.0",
  plugins: [{ type: identity.product, datastore_type: "embedded", ipam: { type: identity.ipamType } }],
});
const PTP = JSON.stringify({ name: "other", cniVersion: "1.0.0", plugins: [{ type: "ptp" }] });

/** A missing comma after the first field. */
const DAMAGED = `{\n  "name": "pods"\n  "cniVersion": "1.0.0", "type": "${identity.product}"\n}\n`;
const UNUSABLE = OWN.replace('"embedded"', '"nonsense"');

function find(files: Readonly<Record<string, string | undefined>>, env: Readonly<Record<string, string>> = {}) {
  return findInstalledNetwork({
    listFolder: async (path) =>
      Object.keys(files)
        .filter((file) => file.startsWith(`${path}/`))
        .map((file) => file.slice(path.length + 1)),
    readFile: async (path) => files[path] ?? Promise.reject(Object.assign(new Error("denied"), { code: "EACCES" })),
    env,
  });
}

describe("findInstalledNetwork()", () => {
  test("finds the config that runs our plugin before the one of the agent", async () => {
    const found = await find({ [`${DIRECTORY}/10-own.conflist`]: OWN, [AGENT_FILE]: OWN });

    expect(found?.file).toBe(`${DIRECTORY}/10-own.conflist`);
    expect(found && isForAgentOnly(found)).toBe(false);
  });

  test("finds that of the agent if another plugin connects the pods", async () => {
    const found = await find({ [`${DIRECTORY}/10-ptp.conflist`]: PTP, [AGENT_FILE]: OWN });

    expect(found?.file).toBe(AGENT_FILE);
    expect(found && isForAgentOnly(found)).toBe(true);
  });

  test("looks in the directory that the environment names", async () => {
    const file = "/var/run/multus/cni/net.d/10-own.conflist";
    const files = { [file]: OWN, [`${DIRECTORY}/10-own.conflist`]: PTP };

    expect((await find(files, { CNI_CONF_DIR: "/var/run/multus/cni/net.d" }))?.file).toBe(file);
    expect(await find(files)).toBeUndefined();
  });

  test("finds none if there is neither", async () => {
    expect(await find({ [`${DIRECTORY}/10-ptp.conflist`]: PTP })).toBeUndefined();
  });

  test("fails at the place in a file that cannot be parsed, before any other config", async () => {
    const files = { [`${DIRECTORY}/10-a.conflist`]: DAMAGED, [`${DIRECTORY}/20-b.conflist`]: OWN };

    await expect(find(files)).rejects.toThrow(
      `Cannot use ${DIRECTORY}/10-a.conflist:3:3: not valid JSON: expected "," or "}"`,
    );
  });

  test("fails at the place of a field that our plugin refuses", async () => {
    const pretty = JSON.stringify(JSON.parse(UNUSABLE), undefined, 2);

    await expect(find({ [`${DIRECTORY}/10-a.conflist`]: pretty })).rejects.toThrow(
      `Cannot use ${DIRECTORY}/10-a.conflist:7:25: "datastore_type"`,
    );
  });

  test.each([
    ["empty", ""],
    ["cut off", '{ "name": "x'],
    ["a list", "[]"],
    ["unreadable", undefined],
  ])("fails if the only file is %s: it may have been ours", async (_, text) => {
    await expect(find({ [`${DIRECTORY}/10-a.conflist`]: text })).rejects.toThrow(`${DIRECTORY}/10-a.conflist`);
    await expect(find({ [AGENT_FILE]: text })).rejects.toThrow(AGENT_FILE);
  });

  test.each([
    ["a damaged config of another plugin before it", { [`${DIRECTORY}/05-x.conflist`]: "{" }],
    ["a damaged one after it", { [`${DIRECTORY}/20-x.conflist`]: DAMAGED }],
    ["one that our plugin refuses after it", { [`${DIRECTORY}/20-x.conflist`]: UNUSABLE }],
  ])("finds ours with %s, and reports that", async (_, other) => {
    const files = { ...other, [`${DIRECTORY}/10-own.conflist`]: OWN };
    const found = await find(Object.fromEntries(Object.entries(files).sort()));

    expect(found?.file).toBe(`${DIRECTORY}/10-own.conflist`);
    expect(found?.skipped).toEqual([expect.stringContaining(`Cannot use ${Object.keys(other)[0]}:`)]);
  });

  test("fails if it cannot look into the directory", async () => {
    const listFolder = () => Promise.reject(Object.assign(new Error("denied"), { code: "EACCES" }));

    await expect(findInstalledNetwork({ listFolder, readFile: async () => "", env: {} })).rejects.toThrow(DIRECTORY);
  });
});
