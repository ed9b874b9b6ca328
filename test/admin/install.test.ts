/** `install`, `status` and `uninstall` on a real API server without nodes and without a running operator, which the test plays. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { identity } from "../../src/identity.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
setDefaultTimeout(120_000);

describe("the installation of a cluster by the admin tool", () => {
  let server: ApiServer;
  beforeAll(async () => {
    if (problem !== undefined) return;
    server = await startApiServer();
  });
  afterAll(() => server?.stop());

  const admin = async (...args: readonly string[]) => {
    const command = [builtProgram(identity.adminTool), ...args, `--kubeconfig=${server.adminKubeconfig}`];
    const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, stdout, stderr };
  };
  const changedLines = (stdout: string) =>
    stdout.split("\n").filter((line) => line !== "" && !line.endsWith(" unchanged"));
  const report = (type: string, generation: number) => {
    const conditions = ["Ready", "Progressing", "Degraded"].map((each) => ({
      type: each,
      status: each === type ? "True" : "False",
      reason: "AllObjectsAvailable",
      message: "",
      observedGeneration: generation,
      lastTransitionTime: "2026-01-02T03:04:05Z",
    }));
    const patch = JSON.stringify({ status: { conditions } });
    return server.kubectl([
      "patch",
      "installation",
      "default",
      "--subresource=status",
      "--type=merge",
      `--patch=${patch}`,
    ]);
  };

  testServer("nothing is installed: status says so", async () => {
    const { code, stdout } = await admin("status");

    expect(code).toBe(1);
    expect(stdout).toContain(`what to do: ${identity.adminTool} install\n`);
  });

  testServer("install applies everything, and options change only what they name", async () => {
    const first = await admin("install", "--pod-cidr=10.244.0.0/16", "--pod-cidr=fd00:244::/56", "--mtu=1400");
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toEndWith("Installation default created\n");
    const changed = await admin("install", "--mtu=1450");
    expect(changedLines(changed.stdout)).toEqual(["Installation default configured"]);
    const { spec } = await server.get<{ spec: Record<string, { mtu: number; ipPools: readonly object[] }> }>(
      "installation",
      "default",
    );
    expect(spec[`${identity.product}Network`]).toMatchObject({ mtu: 1450, ipPools: [{}, {}] });
  });

  testServer(
    "a second time nothing changes, and --wait returns when the operator reports that it is ready",
    async () => {
      const { metadata } = await server.get<{ metadata: { generation: number } }>("installation", "default");
      await report("Ready", metadata.generation);
      const again = await admin("install", "--wait", "--timeout=2s");

      expect(again).toMatchObject({ code: 0, stderr: "" });
      expect(changedLines(again.stdout)).toEqual(["Installation: Ready", expect.stringContaining("is installed.")]);
    },
  );

  testServer("what the operator would refuse is refused before anything is applied", async () => {
    const { code, stderr } = await admin("install", "--pod-cidr=10.244.0.7/16");

    expect(code).toBe(1);
    expect(stderr).toContain("host bits");
  });

  testServer("the objects that --dry-run prints are those that kubectl applies", async () => {
    const { stdout } = await admin("install", "--dry-run");

    const applied = await server.kubectl(
      ["apply", "--server-side", "--dry-run=server", "--force-conflicts", "--filename=-"],
      stdout,
    );
    expect(applied.split("\n").length).toBeGreaterThan(25);
  });

  testServer(
    "uninstall removes the operator and keeps the definitions; --crds removes them and their pools",
    async () => {
      await server.apply(
        JSON.stringify({
          apiVersion: `${identity.apiGroup}/v3`,
          kind: "IPPool",
          metadata: { name: "kept", finalizers: [`${identity.labelPrefix}blocks`] },
          spec: { cidr: "10.9.0.0/24" },
        }),
      );
      expect(await admin("uninstall")).toMatchObject({ code: 0, stderr: "" });
      expect(await server.kubectl(["get", "ippools", "--output=name"])).toContain("/kept");

      expect(await admin("uninstall", "--crds")).toMatchObject({ code: 0, stderr: "" });
      await pollUntil(
        async () => (await server.kubectl(["get", "crd", "--output=name"])).trim() === "",
        "the end of the definitions",
      );
      expect((await admin("uninstall")).code).toBe(0);
    },
  );
});
