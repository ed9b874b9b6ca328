/** The operator installs, keeps and changes what an Installation says. */
import { describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { IGNORE_ANNOTATION } from "../../src/release/operator-names.ts";
import { CONSOLE, CONSOLE_HOSTS, FLOW_READER, FLOWS, FLOWS_API_SERVICE } from "../../src/release/workloads/names.ts";
import { VERSION } from "../../src/version.ts";
import type { testNeeding } from "../support/needs.ts";
import {
  ACCOUNT,
  ADDRESS_LIST,
  bindingPath,
  CHOOSER,
  CONFIG,
  CONFIGURATIONS,
  condition,
  createChooser,
  createInstallation,
  DAEMON_SET,
  DAEMON_SETS,
  DEFAULT,
  NETWORK,
  reportRunning,
  SPEC,
  UNINSTALL,
  versions,
} from "../support/operator-objects.ts";
import { type Json, type OperatorSite, POOLS, STATUSES, type TestOperator } from "../support/operator-site.ts";
import { pollUntil } from "../support/poll.ts";

const VERSION_FIELD = `${identity.product}Version`;

export function installationTests(site: () => OperatorSite, testServer: ReturnType<typeof testNeeding>): void {
  describe("an Installation", () => {
    let operator: TestOperator;

    testServer("installs everything from an Installation, and says what it waits for", async () => {
      await createChooser(site());
      operator = await site().startOperator();
      await createInstallation(site(), { [NETWORK]: { ...SPEC[NETWORK], featureControl: { floatingIPs: true } } });
      const found = await site().until(
        DEFAULT,
        (object) =>
          condition(object, "Progressing").status === "True" && condition(object, "Degraded").status === "False",
        "the Installation to progress",
      );

      expect(condition(found, "Ready").status).toBe("False");
      expect(found.metadata.finalizers).toEqual([`${identity.operatorApiGroup}/installation`]);
      expect(found.spec[NETWORK].ipPools[0].encapsulation).toBe("VXLANCrossSubnet");
      expect(found.status.computed[NETWORK].bgp).toBe("Enabled");
      expect(found.status[VERSION_FIELD]).toBeUndefined();
      // The settings are there before the agents that read them.
      const order = [CONFIGURATIONS, DAEMON_SET].map((path) =>
        operator.writes.findIndex((write) => write.includes(path)),
      );
      expect(order[0]).toBeGreaterThan(-1);
      expect(order[0]).toBeLessThan(order[1] ?? -1);
      const owned = await site().read(DAEMON_SET);
      expect(owned.metadata.ownerReferences[0].uid).toBe(found.metadata.uid);
      expect((await site().read(ACCOUNT)).metadata.ownerReferences).toBeUndefined();
      const [pool] = await site().list(POOLS);
      expect([pool.spec.cidr, pool.metadata.labels["app.kubernetes.io/managed-by"]]).toEqual([
        "10.10.0.0/16",
        identity.operator,
      ]);
    });

    testServer("is Ready as soon as the orchestrator reports that everything runs", async () => {
      await reportRunning(site());
      await site().until(
        DEFAULT,
        (object) => condition(object, "Ready").status === "True",
        "the Installation to be Ready",
      );

      expect((await site().read(DEFAULT)).status[VERSION_FIELD]).toBe(VERSION);
      const statuses = await site().list(STATUSES);
      const available = statuses.map((each) => [each.metadata.name, condition(each, "Available").status]);
      expect(Object.fromEntries(available)).toEqual({
        controllers: "True",
        installation: "True",
        ippools: "True",
        node: "True",
      });
    });

    testServer("brings the admission policies; those who can choose addresses already are in the list", async () => {
      const policies = ["chosen-addresses", "chosen-addresses-elsewhere", "recorded-addresses", "address-list"];
      for (const policy of policies) expect(await site().read(bindingPath(policy))).toBeDefined();
      expect((await site().read(ADDRESS_LIST)).data).toEqual({ floatingIPs: "choosers\n" });
      const pods = "/api/v1/namespaces/choosers/pods";
      await pollUntil(async () => !(await accepts(`${pods}`, "ipAddrsNoIpam")), "the policies");
      expect(await accepts(pods, "floatingIPs")).toBe(true);
    });

    testServer("switches each group of policies off and on, and leaves the list alone", async () => {
      const chosen = bindingPath("chosen-addresses");
      await site().patch(DEFAULT, { spec: { admissionPolicies: { chosenAddresses: "Disabled" } } });
      await site().until(chosen, (object) => object === undefined, "the policy to go");
      await operator.untilIdle();
      expect(await site().read(bindingPath("address-list"))).toBeUndefined();
      expect(await site().read(bindingPath("recorded-addresses"))).toBeDefined();
      await site().patch(ADDRESS_LIST, { data: { floatingIPs: "choosers\nothers\n" } });

      await site().patch(DEFAULT, { spec: { admissionPolicies: { chosenAddresses: "Enabled" } } });
      await site().until(chosen, (object) => object !== undefined, "the policy to come back");
      await operator.untilIdle();
      expect((await site().read(ADDRESS_LIST)).data).toEqual({ floatingIPs: "choosers\nothers\n" });
      await site().remove(CHOOSER);
      // An empty one, which may be deleted, is created again.
      await site().patch(ADDRESS_LIST, { data: null });
      const { uid } = (await site().read(ADDRESS_LIST)).metadata;
      await site().remove(ADDRESS_LIST);
      await site().until(ADDRESS_LIST, (object) => object !== undefined && object.metadata.uid !== uid, "a new list");
    });

    testServer("switches flows on and off with all that belongs to their API, and repairs it", async () => {
      const namespace = identity.systemNamespace;
      const paths = [
        `/api/v1/namespaces/${namespace}/services/${FLOWS}`,
        `/apis/apiregistration.k8s.io/v1/apiservices/${FLOWS_API_SERVICE}`,
        `/apis/rbac.authorization.k8s.io/v1/clusterroles/${FLOW_READER}`,
        `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles/${FLOWS}`,
      ];
      const every = async (isThere: boolean) => {
        for (const path of paths) await site().until(path, (object) => (object !== undefined) === isThere, path);
        await operator.untilIdle();
      };
      await site().patch(DEFAULT, { spec: { flows: { mode: "Enabled", historyMegabytes: 50 } } });
      await every(true);
      expect((await site().read(`${CONFIGURATIONS}/default`)).spec).toMatchObject({
        flows: "Enabled",
        flowHistoryMegabytes: 50,
      });
      const [service = ""] = paths;
      await site().remove(service);
      await every(true);

      await site().patch(DEFAULT, { spec: { flows: null } });
      // The API server stops asking at once; the former controllers keep what they use until they are replaced.
      const [, apiService = "", ...used] = paths;
      await site().until(apiService, (object) => object === undefined, "the APIService to go");
      await operator.untilIdle();
      for (const path of [service, ...used]) expect(await site().read(path)).toBeDefined();
      await reportRunning(site());
      await every(false);
      const { spec } = await site().read(`${CONFIGURATIONS}/default`);
      expect(spec.flows).toBe("Disabled");
      expect(spec.flowHistoryMegabytes).toBeUndefined();
    });

    testServer("switches the console on and off, names it while it is not ready, and repairs it", async () => {
      const namespace = identity.systemNamespace;
      const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
      const role = `${rbac}/roles/${CONSOLE}`;
      const deployment = `/apis/apps/v1/namespaces/${namespace}/deployments/${CONSOLE}`;
      const [service, ...others] = [
        `/api/v1/namespaces/${namespace}/services/${CONSOLE}`,
        deployment,
        `/api/v1/namespaces/${namespace}/serviceaccounts/${CONSOLE}`,
        role,
        `${rbac}/rolebindings/${CONSOLE}`,
        `${STATUSES}/console`,
      ];
      const every = async (isThere: boolean) => {
        for (const path of [service, ...others])
          await site().until(path, (object) => (object !== undefined) === isThere, path);
        await operator.untilIdle();
      };
      const hostsOf = (object: Json | undefined) => object?.metadata.annotations[CONSOLE_HOSTS];
      await site().patch(DEFAULT, { spec: { console: { mode: "Enabled", hosts: ["console.example.org"] } } });
      await every(true);
      expect(hostsOf(await site().read(service))).toBe("console.example.org");
      const waiting = condition(await site().read(DEFAULT), "Ready");
      expect(waiting).toMatchObject({ status: "False", message: expect.stringContaining(`${CONSOLE}`) });
      const status = condition(await site().read(`${STATUSES}/console`), "Available");
      expect(status.message).toContain(`Deployment ${namespace}/${CONSOLE}`);
      await site().remove(service);
      await every(true);
      await site().patch(DEFAULT, { spec: { console: { hosts: ["console.example.org", "192.0.2.7"] } } });
      await site().until(service, (object) => hostsOf(object) === "console.example.org,192.0.2.7", "the other host");

      await site().patch(DEFAULT, { spec: { console: null } });
      await site().until(deployment, (object) => object === undefined, "the Deployment to go");
      await operator.untilIdle();
      expect(await site().read(role)).toBeDefined();
      const { message } = condition(await site().read(`${STATUSES}/installation`), "Progressing");
      expect(message).toContain("deleted when pods of a former version are replaced: ");
      expect(message).toContain(`${namespace}/${CONSOLE}`);
      await reportRunning(site());
      await every(false);
      expect((await site().read(DEFAULT)).spec.console).toEqual({ mode: "Disabled" });
      const ready = condition(await site().read(DEFAULT), "Ready");
      expect(ready.status).toBe("True");
    });

    async function accepts(pods: string, annotation: string): Promise<boolean> {
      const annotations = { [`${identity.annotationPrefix}${annotation}`]: "[]" };
      const spec = { containers: [{ name: "main", image: "none" }], automountServiceAccountToken: false };
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "choosing", annotations }, spec };
      const request = { method: "POST", path: pods, query: { dryRun: "All" }, body: JSON.stringify(pod) } as const;
      return site()
        .send(request)
        .then(
          () => true,
          () => false,
        );
    }

    testServer("writes nothing if everything is as it should be, also after a restart", async () => {
      await operator.untilIdle();
      await operator.stop();
      const before = await versions(site());
      operator = await site().startOperator();
      await operator.untilIdle();

      expect(await versions(site())).toEqual(before);
    });

    testServer(
      "puts back what is edited or deleted by hand, but leaves an object that an administrator keeps",
      async () => {
        const config = await site().read(CONFIG);
        await site().patch(CONFIG, { data: { config: "edited" } });
        await site().remove(ACCOUNT);
        await site().until(
          CONFIG,
          (object) => object.data.config === config.data.config,
          "the config to be put back",
          5_000,
        );
        await site().until(ACCOUNT, (object) => object !== undefined, "the account to be created again", 5_000);

        const annotations = { [IGNORE_ANNOTATION]: "true" };
        await site().patch(CONFIG, { metadata: { annotations }, data: { config: "edited" } });
        await operator.untilIdle();
        expect((await site().read(CONFIG)).data.config).toBe("edited");

        await site().patch(CONFIG, { metadata: { annotations: { [IGNORE_ANNOTATION]: null } } });
        await site().until(
          CONFIG,
          (object) => object.data.config === config.data.config,
          "the config to be put back",
          5_000,
        );
      },
    );

    testServer("rolls out a change: of the config, of the pods that read it, of the pools", async () => {
      await reportRunning(site());
      const before = await site().read(DAEMON_SET);
      const ipPools = [{ cidr: "10.10.0.0/16" }, { cidr: "fd00:10::/64" }];
      await site().patch(DEFAULT, { spec: { [NETWORK]: { mtu: 1400, ipPools } } });
      const rolled = (object: Json) => object.metadata.generation > before.metadata.generation;
      await site().until(DAEMON_SET, rolled, "the pods to be replaced");
      const isSeen = (object: Json) => condition(object, "Ready").observedGeneration === object.metadata.generation;
      expect(condition(await site().until(DEFAULT, isSeen, "the change to be reported"), "Ready").status).toBe("False");
      await operator.untilIdle();

      const [plugin] = JSON.parse((await site().read(CONFIG)).data.config).plugins;
      expect([plugin.mtu, plugin.ipam.assign_ipv4, plugin.ipam.assign_ipv6]).toEqual([1400, "true", "true"]);
      expect((await site().list(POOLS)).map(({ spec }) => spec.cidr).toSorted()).toEqual([
        "10.10.0.0/16",
        "fd00:10::/64",
      ]);
      expect((await site().read(DEFAULT)).status.mtu).toBe(1400);
    });

    testServer("deletes what it applied and renders no more, and nothing else", async () => {
      const labels = { "app.kubernetes.io/managed-by": identity.operator };
      const { spec } = await site().read(DAEMON_SET);
      const daemonSet = (name: string, fieldManager: string) =>
        site().send({
          method: "PATCH",
          path: `${DAEMON_SETS}/${name}`,
          query: { fieldManager, force: "true" },
          contentType: "application/apply-patch+yaml",
          body: JSON.stringify({ apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name, labels }, spec }),
        });
      await daemonSet("somebody-elses", "somebody");
      await daemonSet(`${identity.nodeAgent}-uninstall`, identity.operator);
      await site().until(UNINSTALL, (object) => object === undefined, "the former DaemonSet to be deleted", 5_000);
      await operator.untilIdle();

      const others = `${DAEMON_SETS}/somebody-elses`;
      expect(await site().read(others)).toBeDefined();
      await site().remove(others);
    });

    testServer("changes nothing while the Installation is not valid, and says what to correct", async () => {
      await operator.untilIdle();
      const before = await versions(site());
      await site().patch(DEFAULT, {
        spec: { [NETWORK]: { bgp: "Disabled", ipPools: [{ cidr: "10.10.0.0/16", encapsulation: "None" }] } },
      });
      const found = await site().until(
        DEFAULT,
        (object) => condition(object, "Degraded").status === "True",
        "Degraded",
      );

      const { reason, message } = condition(found, "Degraded");
      expect(reason).toBe("InvalidConfigurationError");
      expect(message).toContain(`spec.${NETWORK}.ipPools[0].encapsulation: "None" needs BGP`);
      expect(await versions(site())).toEqual(before);
      const events = await site().list("/api/v1/namespaces/default/events");
      expect(events.some((event) => event.reason === reason && event.type === "Warning")).toBe(true);

      await site().patch(DEFAULT, {
        spec: { [NETWORK]: { bgp: "Enabled", mtu: 1300, ipPools: [{ cidr: "10.10.0.0/16" }] } },
      });
      await reportRunning(site());
      await operator.untilIdle();
      await reportRunning(site());
      await site().until(
        DEFAULT,
        (object) => condition(object, "Ready").status === "True",
        "the Installation to be Ready",
      );
      const pools = await site().list(POOLS);
      expect(pools.filter(({ spec }) => spec.disabled).map(({ spec }) => spec.cidr)).toEqual(["fd00:10::/64"]);
    });

    testServer("ends at once", () => operator.stop());
  });
}
