import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { fakeCluster } from "../../../../test/support/fake-cluster.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import { clusterObjects } from "../../../kube/objects.ts";
import type { Helm } from "../../engine/step.ts";
import { packRelease } from "../../helm-releases.ts";
import { helmArguments, runChart } from "./run-chart.ts";

const NAMESPACE = "vendor-operator";
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const RUN = { name: "net", values: { installation: { enabled: true } } };

function secretOf(revision: number, status: string) {
  const record = {
    name: "net",
    version: revision,
    info: { status },
    chart: { metadata: { name: "vendor-operator", version: "3.29.0" } },
  };
  const name = `sh.helm.release.v1.net.v${revision}`;
  const metadata = { name, namespace: NAMESPACE };
  return [
    `${SECRETS}/${name}`,
    { metadata, type: "helm.sh/release.v1", data: { release: packRelease(record) } },
  ] as const;
}

function siteWith(...secrets: readonly ReturnType<typeof secretOf>[]) {
  const cluster = fakeCluster({ objects: Object.fromEntries(secrets) });
  const calls: { readonly args: readonly string[]; readonly stdin?: string | undefined }[] = [];
  const helm: Helm = async (args, stdin) => {
    calls.push({ args, stdin });
    return { code: 0, stdout: "v3.19.0+g1", stderr: "" };
  };
  return { cluster, calls, site: { ...upgradeSite({ objects: clusterObjects(cluster.client) }), helm } };
}

describe("runChart()", () => {
  test("gives Helm the values on standard input", async () => {
    const { site, calls } = siteWith(secretOf(1, "deployed"));
    await runChart(site, RUN);

    expect(calls.at(-1)?.args.slice(0, 3)).toEqual(["upgrade", "--install", "net"]);
    expect(calls.at(-1)?.args.slice(-2)).toEqual(["--values", "-"]);
    expect(JSON.parse(calls.at(-1)?.stdin ?? "")).toEqual(RUN.values);
  });

  test("does not touch a release that another Helm is working on", async () => {
    const { site, cluster, calls } = siteWith(secretOf(1, "deployed"), secretOf(2, "pending-upgrade"));
    await expect(runChart(site, RUN)).rejects.toMatchObject({ kind: "resource-in-use" });

    expect(calls).toEqual([]);
    expect(cluster.objects.has(secretOf(2, "")[0])).toBe(true);
  });

  test("clears the record of its own run that was killed, after it has given Helm time to end", async () => {
    const { site, cluster, calls } = siteWith(secretOf(1, "deployed"), secretOf(2, "pending-upgrade"));
    await site.notes.write({ pendingRelease: "net" });
    const before = site.now().getTime();
    await runChart(site, RUN);

    expect(site.now().getTime() - before).toBeGreaterThanOrEqual(30_000);
    expect([...cluster.objects.keys()]).toEqual([secretOf(1, "")[0]]);
    expect(calls).toHaveLength(2);
  });

  test("says without Helm which command to run, with files that only the user can read", async () => {
    const { site } = siteWith(secretOf(1, "deployed"));
    const failure = await runChart({ ...site, helm: undefined }, RUN).catch((error) => error);

    expect(failure).toMatchObject({ kind: "try-again-later" });
    const [, file = ""] = /--values (\S+)"/.exec(failure.details) ?? [];
    expect(await Bun.file(file).json()).toEqual(RUN.values);
    expect((await Bun.file(file).stat()).mode & 0o777).toBe(0o600);
    rmSync(dirname(file), { recursive: true });
  });
});

describe("helmArguments()", () => {
  test("names the version of a chart in a repository, but not of one in a directory", () => {
    expect(helmArguments("net", "repo/vendor-operator", "v3.29.0").join(" ")).toContain("--version 3.29.0");
    expect(helmArguments("net", "./chart", "v3.29.0")).not.toContain("--version");
  });
});
