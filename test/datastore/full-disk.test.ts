/** A full filesystem under the embedded datastore, the log or host-local's files: a small one in a mount namespace. */
import { afterAll, describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const test = testNeeding(hostProblem(), program("unshare"));
const directory = temporaryDirectory("full-disk");
const disk = directory.path;
afterAll(() => directory.remove());

const POOL = { apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "a" }, spec: { cidr: "10.1.0.0/16" } };
const ADD = "CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_IFNAME=eth0 CNI_NETNS=/run/netns/none CNI_PATH=/none";
const FILL = `dd if=/dev/zero of=${disk}/fill bs=1k 2>/dev/null || true`;

function tool(command: string): string {
  return `${builtProgram(identity.adminTool)} ${command} --datastore-type embedded --datastore-path ${disk}/store/db`;
}

async function run(...steps: readonly string[]): Promise<string> {
  const script = [`mount -t tmpfs -o size=300k none ${disk}`, ...steps].join("\n");
  const child = Bun.spawn(["unshare", "-m", "sh", "-c", script], { stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return stdout + stderr;
}

describe("a full disk", () => {
  test("is reported by the admin tool, whichever error SQLite returns", async () => {
    const apply = `echo '${JSON.stringify(POOL)}' | ${tool("apply -f -")}`;
    const output = await run(tool("datastore init"), FILL, apply);

    expect(output).toContain(`no space left under "${disk}/store"`);
    expect(output).not.toContain("I/O");
  });

  test("is reported by the plugin, and its log says why it is not in the file", async () => {
    const config = {
      cniVersion: "1.0.0",
      name: "pods",
      type: identity.product,
      datastore_type: "embedded",
      datastore_path: `${disk}/db`,
      log_file_path: `${disk}/cni.log`,
      ipam: { type: identity.ipamType },
    };
    const output = await run(FILL, `echo '${JSON.stringify(config)}' | ${ADD} ${builtProgram(identity.ipamType)}`);

    expect(output).toContain(`no space left under \\"${disk}\\"`);
    expect(output).toContain("no space left on device (ENOSPC)");
  });

  test("is reported by host-local", async () => {
    const config = {
      cniVersion: "1.0.0",
      name: "pods",
      type: "host-local",
      ipam: { type: "host-local", dataDir: `${disk}/networks`, ranges: [[{ subnet: "10.0.0.0/24" }]] },
    };
    const output = await run(FILL, `echo '${JSON.stringify(config)}' | ${ADD} ${builtProgram("host-local")}`);

    expect(output).toContain("No space left on device");
  });
});
