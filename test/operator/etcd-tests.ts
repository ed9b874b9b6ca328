/** An Installation whose datastore is etcd, with its Secrets. */
import { describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { NODE_AGENT_CONFIGURATION, POOL } from "../../src/model/kinds.ts";
import type { testNeeding } from "../support/needs.ts";
import {
  condition,
  createInstallation,
  DAEMON_SET,
  DEFAULT,
  finishNamespace,
  reportDaemonSet,
  reportRunning,
  SPEC,
  SYSTEM_NAMESPACE,
  UNINSTALL,
} from "../support/operator-objects.ts";
import { type Json, type OperatorSite, POOLS } from "../support/operator-site.ts";
import { pollUntil } from "../support/poll.ts";

const SECRETS = `/api/v1/namespaces/${identity.operator}/secrets`;
const COPIES = `${SYSTEM_NAMESPACE}/secrets`;

export function etcdTests(site: () => OperatorSite, testServer: ReturnType<typeof testNeeding>): void {
  describe("an Installation on etcd", () => {
    testServer("has its pools there, and copies of the Secrets that its pods use", async () => {
      const operator = await site().startOperator();
      const inApi = (await site().list(POOLS)).length;
      const etcd = { endpoints: [site().server.etcdEndpoint], secretName: "certificates" };
      const imagePullSecrets = [{ name: "pull" }];
      await createInstallation(site(), { ...SPEC, imagePullSecrets, datastore: { type: "Etcd", etcd } });
      const isMissing = (object: unknown) =>
        condition(object, "Degraded").message?.includes('Secret "certificates" does not exist');
      await site().until(DEFAULT, isMissing, "the missing Secret to be named");

      await createSecret("certificates", "Opaque", { "etcd-ca": "" });
      await createSecret("pull", "kubernetes.io/dockerconfigjson", { ".dockerconfigjson": btoa("{}") });
      const isApplied = (object: unknown) => condition(object, "Degraded").status === "False";
      await site().until(DEFAULT, isApplied, "the Installation to be applied");
      await operator.untilIdle();
      const names = [await read(POOL.prefix()), await read(NODE_AGENT_CONFIGURATION.prefix())];
      expect(names).toEqual([["default-ipv4-ippool"], ["default"]]);
      expect((await site().list(POOLS)).length).toBe(inApi);
      expect(await copies()).toEqual(["certificates", "pull"]);
      expect((await site().read(`${COPIES}/pull`)).type).toBe("kubernetes.io/dockerconfigjson");

      const before = await hash();
      const authority = btoa(readFileSync(site().server.credentials.authority.cert, "utf8"));
      await site().patch(`${SECRETS}/certificates`, { data: { "etcd-ca": authority } });
      await pollUntil(async () => (await hash()) !== before, "the pods to be replaced");
      await site().patch(DEFAULT, { spec: { imagePullSecrets: [] } });
      const isApart = ({ spec }: Json) => spec.template.spec.imagePullSecrets === undefined;
      await site().until(DAEMON_SET, isApart, "the pods to be replaced again");
      await operator.untilIdle();
      // Pods of the former version still use it.
      expect(await copies()).toEqual(["certificates", "pull"]);
      await reportRunning(site());
      await pollUntil(async () => (await copies()).join() === "certificates", "the copy to be deleted");

      await site().remove(DEFAULT);
      await site().until(UNINSTALL, (object) => object !== undefined, "the DaemonSet that cleans up the nodes");
      await reportDaemonSet(site(), UNINSTALL, 0);
      await site().until(DEFAULT, (object) => object === undefined, "the Installation to be gone");
      expect([await read(POOL.prefix()), await read(NODE_AGENT_CONFIGURATION.prefix())]).toEqual([
        ["default-ipv4-ippool"],
        [],
      ]);
      await operator.stop();
      await finishNamespace(site());
    });

    const createSecret = (name: string, type: string, data: object) =>
      site().send({
        method: "POST",
        path: SECRETS,
        body: JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name }, type, data }),
      });

    const copies = async () => (await site().list(COPIES)).map(({ metadata }) => metadata.name).toSorted();

    const hash = async () => JSON.stringify((await site().read(DAEMON_SET)).spec.template.metadata.annotations);

    /** The names of the records in etcd. */
    async function read(prefix: string): Promise<readonly (string | undefined)[]> {
      const source = { kind: "endpoints", endpoints: [site().server.etcdEndpoint] } as const;
      const store = await openDatastore({ kind: "etcd", source });
      try {
        const { answers } = await store.read([{ kind: "prefix", prefix }]);
        return answers.flat().map(({ key }) => key.split("/").at(-1));
      } finally {
        await store.close();
      }
    }
  });
}
