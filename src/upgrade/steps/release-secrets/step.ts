/** Rule 4: the records of the release in its former namespace, which nothing needs when the new one works. Never an uninstall. */
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import { textAt } from "../../../release/live-object.ts";
import { restoreBackedUp } from "../../engine/restore-objects.ts";
import type { PlanningSite, Step } from "../../engine/step.ts";
import { movingRelease, releaseRecords, releaseSecrets } from "../../helm-releases.ts";
import { fieldsIn } from "../../object-fields.ts";
import { operatorReports, untilNone } from "../../operator-install/operator-rollout.ts";

export const releaseSecretsStep: Step = {
  name: "release-secrets",
  title: "Delete the records of the former release",
  rule: 4,
  why: `Otherwise a later "helm uninstall" of the former release would delete the operator's namespace.`,
  async plan(site) {
    const secrets = await formerSecrets(site);
    if (secrets.length === 0) return undefined;
    return {
      step: this.name,
      changes: secrets.map((secret) => ({ action: "delete", what: `Secret ${place(secret)}`, path: pathOf(secret) })),
      obstacles: [],
      notes: [
        `They are deleted when the new release is deployed and the operator reports ${site.release.version} as available.`,
      ],
      estimatedSeconds: 5,
      data: {},
    };
  },
  remaining: async (site) => (await formerSecrets(site)).map((secret) => `delete Secret ${place(secret)}`),
  async act(site) {
    const release = movingRelease(site);
    if (release === undefined) return;
    const [newest] = await releaseRecords(site.objects, { name: release.name, namespace: identity.operator });
    if (newest?.status !== "deployed") {
      const state = newest === undefined ? "there is none" : `it is ${newest.status}`;
      throw new PluginError(
        "try-again-later",
        `Cannot delete the records of the former release: the new one is not deployed, ${state}`,
      );
    }
    await untilNone(site, "Waiting for the operator", () => operatorReports(site.objects, site.release.version));
    const secrets = await formerSecrets(site);
    for (const options of [{ dryRun: ["All"] }, {}]) {
      for (const secret of secrets) {
        const preconditions = { uid: textAt(secret, "metadata", "uid") };
        await site.objects.remove(pathOf(secret), { ...options, preconditions });
      }
    }
    site.progress(`${secrets.length} records of the former release deleted`);
  },
  rollback: (site, { changes }) =>
    restoreBackedUp(
      site,
      changes.flatMap(({ path }) => path ?? []),
    ),
};

async function formerSecrets(site: PlanningSite): Promise<readonly Fields[]> {
  const release = movingRelease(site);
  return release === undefined ? [] : releaseSecrets(site.objects, release);
}

function place(secret: Fields): string {
  const { namespace, name } = fieldsIn(secret, "metadata");
  return `${namespace}/${name}`;
}

function pathOf(secret: Fields): string {
  const { namespace, name } = fieldsIn(secret, "metadata");
  return `/api/v1/namespaces/${namespace}/secrets/${name}`;
}
