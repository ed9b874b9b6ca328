import { describe, expect, test } from "bun:test";
import { objectTable } from "../../../../test/support/object-table.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import { identity } from "../../../identity.ts";
import { packRelease } from "../../helm-releases.ts";
import { chartStep } from "./step.ts";

const { operator: namespace } = identity;

function secret(revision: number, status: string, config: object) {
  const chart = { metadata: { name: namespace, version: "v3.26.4" } };
  const record = { name: "net", version: revision, info: { status }, chart, config, manifest: "" };
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "helm.sh/release.v1",
    metadata: { name: `sh.helm.release.v1.net.v${revision}`, namespace },
    data: { release: packRelease(record) },
  };
}

describe("the plan of the chart", () => {
  test("shows the values that are installed: those of the deployed revision, not of one that failed", async () => {
    const { objects } = objectTable([
      secret(1, "deployed", { apiServer: { enabled: true } }),
      secret(2, "failed", { kubectl: { image: "x" } }),
    ]);
    const release = { name: "net", namespace, revision: 2, chartVersion: "v3.26.4", status: "failed" };
    const site = upgradeSite({ objects, facts: { method: { kind: "chart", release } } });

    const notes = (await chartStep.plan(site))?.notes.join("\n") ?? "";
    expect(notes).toContain("Value apiServer is dropped");
    expect(notes).not.toContain("kubectl");
    expect(notes).toContain("Revision 2 of release net is failed: the values of revision 1 are used");
  });
});
