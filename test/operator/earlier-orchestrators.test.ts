/** What is installed on API servers that cannot serve everything: by the manifests `older/`, by the admin tool and by the operator. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { NODE_TOKENS } from "../../src/release/admission/node-policies.ts";
import { manifestFiles } from "../../src/release/manifests/manifest-files.ts";
import { type ApiServer, apiServerProblem, type EarlierRelease, startApiServer } from "../support/kube-apiserver.ts";
import { manifestText } from "../support/manifest-text.ts";
import { testNeeding } from "../support/needs.ts";
import { startOperatorOn } from "../support/operator-site.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";

setDefaultTimeout(120_000);

const FILES = Object.keys(manifestFiles()).filter((file) => file.startsWith("older/"));
const POLICIES = "validatingadmissionpolicies";
const RELEASES: Readonly<Record<EarlierRelease, { readonly servesPolicies: boolean; readonly hasRules: boolean }>> = {
  "1.24": { servesPolicies: false, hasRules: false },
  "1.30": { servesPolicies: true, hasRules: true },
};

for (const release of Object.keys(RELEASES) as readonly EarlierRelease[]) {
  const { servesPolicies, hasRules } = RELEASES[release];
  const problem = proofSize({ everyDay: "only in `make soak`", soak: undefined }) ?? apiServerProblem(release);
  const testServer = testNeeding(problem);

  describe(`Kubernetes ${release}`, () => {
    let server: ApiServer;
    beforeAll(async () => {
      if (problem === undefined) server = await startApiServer({ release });
    });
    afterAll(() => server?.stop());

    const applyFile = (file: string) =>
      server.kubectl(["apply", "--server-side", "--force-conflicts", "--filename=-"], manifestText(file));

    testServer("refuses the definitions of newer ones, and takes every file for older ones", async () => {
      await expect(applyFile("operator-crds.yaml")).rejects.toThrow(/x-kubernetes-validations/);
      expect(FILES).toHaveLength(6);
      for (const file of FILES) await applyFile(file);
      await applyFile("operator.yaml");
    });

    testServer("gets from the admin tool the rules that it can compile, and a note about the others", async () => {
      await server.kubectl([
        ...["delete", `--namespace=kube-system`, "--ignore-not-found"],
        ...[`daemonset/${identity.nodeAgent}`, `deployment/${identity.controllers}`],
      ]);
      const { code, stderr } = await install(server);

      expect([code, stderr]).toEqual([0, expect.stringMatching(/^Note: The API server, v1\.\d+\.\d+, cannot compile/)]);
      expect(stderr.includes("has no admission policies")).toBe(!servesPolicies);
      const pool = (vxlanMode: string, blockSize = 26) =>
        JSON.stringify({
          apiVersion: API_VERSION,
          kind: "IPPool",
          metadata: { name: "two-modes" },
          spec: { cidr: "10.9.0.0/16", ipipMode: "Always", vxlanMode, blockSize },
        });
      await server.apply(pool("Never"));
      const both = server.apply(pool("Always"));
      await (hasRules ? expect(both).rejects.toThrow("ipipMode") : both);
      const resized = server.apply(pool("Never", 28));
      await (hasRules ? expect(resized).rejects.toThrow("blockSize") : resized);
      const again = await install(server);
      expect(again.stdout.split("\n").filter((line) => /^CustomResource.*(created|configured)$/.test(line))).toEqual(
        [],
      );
    });

    testServer("runs the operator, which applies the admission policies only if they are served", async () => {
      const operator = await startOperatorOn(server);
      try {
        await operator.untilIdle();
        const agents = await server.get<{ metadata: object }>(
          "daemonset",
          identity.nodeAgent,
          `--namespace=${identity.systemNamespace}`,
        );
        expect(agents.metadata).toMatchObject({ name: identity.nodeAgent });
        expect(operator.writes.some((write) => write.includes(`/${POLICIES}/`))).toBe(servesPolicies);
        expect(operator.writes.filter((write) => write.endsWith(`/${NODE_TOKENS}`))).toEqual([]);
        expect(operator.log.some((line) => line.includes("has no admission policies"))).toBe(!servesPolicies);
      } finally {
        await operator.stop();
      }
    });
  });
}

/** With today's admin tool; a pool of its own, so that the operator has something to do. */
async function install({ adminKubeconfig }: ApiServer) {
  const child = Bun.spawn([builtProgram(identity.adminTool), "install", "--pod-cidr", "10.244.0.0/16"], {
    env: { PATH: process.env["PATH"] ?? "", KUBECONFIG: adminKubeconfig },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, stdout, stderr };
}
