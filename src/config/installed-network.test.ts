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

function find(files: Readonly<Record<string, string>>, env: Readonly<Record<string, string>> = {}) {
  return findInstalledNetwork({
    listFolder: async (path) =>
      Object.keys(files)
        .filter((file) => file.startsWith(`${path}/`))
        .map((file) => file.slice(path.length + 1)),
    readFile: async (path) => files[path] ?? "",
    stderr: () => {},
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
});
