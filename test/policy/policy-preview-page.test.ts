/** docs/policy-preview.md is true: its commands are typed with its policy and the pods that it is about, and print what it shows. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { commandsOfPage, documentsOfPage } from "../support/docs-page.ts";
import { builtProgram, runPlugin } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const FILE = "policy-preview.md";
const page = readFileSync(join(import.meta.dir, "../../docs", FILE), "utf8");
/** What is typed, and what is printed. */
const SHOWN = [...page.matchAll(/^```\n\$ (.*)\n([\s\S]*?)^```$/gm)].map(([, typed = "", printed = ""]) => [
  typed,
  printed,
]);

describe("the page about trying a policy", () => {
  const directory = temporaryDirectory("policy-preview-page");
  afterAll(() => directory.remove());
  const env = {
    ...{ DATASTORE_TYPE: "embedded", DATASTORE_PATH: join(directory.path, "store.db"), NO_COLOR: "1" },
    // Without an agent that records flows.
    [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory.path,
    PATH: `${directory.path}/bin:${process.env["PATH"]}`,
  };
  const tool = builtProgram(identity.adminTool);
  const type = (script: string) => runPlugin("/bin/bash", { args: ["-c", `cd ${directory.path}\n${script}`], env });

  beforeAll(async () => {
    mkdirSync(`${directory.path}/bin`);
    symlinkSync(tool, `${directory.path}/bin/${identity.adminTool}`);
    mkdirSync(`${directory.path}/policies`);
    const [policy = ""] = documentsOfPage(FILE).values();
    writeFileSync(`${directory.path}/policies/db.yaml`, policy);
    await runPlugin(tool, { args: ["datastore", "init"], env });
    const stdin = JSON.stringify([profile("shop"), profile("lab"), ...PODS.map(pod)]);
    const { exitCode, stderr } = await runPlugin(tool, { args: ["apply", "-f", "-"], env, stdin });
    expect([exitCode, stderr]).toEqual([0, ""]);
  });

  test.each(SHOWN)("%s", async (typed, printed) => {
    const { stdout, stderr } = await type(typed);
    expect([stdout, stderr]).toEqual([printed, ""]);
  });

  test("the pipeline asks somebody to look", async () => {
    const script = commandsOfPage(FILE).get("In CI") ?? "";
    const { exitCode, stdout } = await type(script);
    expect([exitCode, stdout]).toEqual([0, "somebody must look at preview.json\n"]);
    expect(JSON.parse(readFileSync(`${directory.path}/preview.json`, "utf8")).denied.length).toBeGreaterThan(0);
  });

  test("the matrix is a picture and a table", async () => {
    const { exitCode } = await type(`set -e\n${commandsOfPage(FILE).get("Who may reach whom")}`);
    const [svg = "", csv = ""] = ["svg", "csv"].map((kind) => readFileSync(`${directory.path}/matrix.${kind}`, "utf8"));
    expect([exitCode, svg.startsWith("<svg"), csv.split("\r\n")[0]]).toEqual([0, true, "from,to,before,after,changed"]);
  });
});

const PODS = [
  ["shop", "web-6d4c-a", "10.0.0.1"],
  ["shop", "web-6d4c-b", "10.0.0.2"],
  ["shop", "db-6d4c-a", "10.0.0.3"],
  ["lab", "probe-6d4c-a", "10.0.0.4"],
] as const;

function profile(namespace: string): object {
  const open = [{ action: "Allow" }];
  return {
    apiVersion: API_VERSION,
    kind: "Profile",
    metadata: { name: `kns.${namespace}` },
    spec: { ingress: open, egress: open },
  };
}

function pod([namespace, name, address]: (typeof PODS)[number]): object {
  const [app = ""] = name.split("-");
  const { labelPrefix, interfacePrefix } = identity;
  const own = { app, "pod-template-hash": "6d4c" };
  const labels = { ...own, [`${labelPrefix}namespace`]: namespace, [`${labelPrefix}orchestrator`]: "k8s" };
  return {
    ...{ apiVersion: API_VERSION, kind: "WorkloadEndpoint" },
    metadata: {
      name: `node--1-k8s-${name.replaceAll("-", "--")}-eth0`,
      ...{ namespace, labels, generateName: `${app}-6d4c-` },
    },
    spec: {
      ...{ orchestrator: "k8s", node: "node-1", pod: name, endpoint: "eth0", profiles: [`kns.${namespace}`] },
      ...{ ipNetworks: [`${address}/32`], interfaceName: `${interfacePrefix}${address.at(-1)}` },
    },
  };
}
