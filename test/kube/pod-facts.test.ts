/** What an ADD learns from the orchestrator's API about its pod, and what it does if that is another pod or none. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { identity } from "../../src/identity.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { permissionsOf, roleObject } from "../../src/release/roles/role-files.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { KUBE_SITE_STORES, type KubePod, type KubeSite, openKubeSite } from "../support/kube-site.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf, type Json } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { relayIntoNetns } from "../support/tcp-relay.ts";
import { startProxy } from "../support/unreliable-proxy.ts";

const POOLS = [poolChange("blue", "10.61.0.0/24"), poolChange("blue6", "fd61::/112"), nodeChange("node-1")];
const STATIC_UID = "0123456789abcdef0123456789abcdef";
const MIRROR = "kubernetes.io/config.mirror";
const { labelPrefix } = identity;

for (const { kind, problem } of KUBE_SITE_STORES)
  describe(`a pod on ${kind}`, () => {
    const test = testNeeding(problem);
    /** Where the API is the datastore too, its requests are part of that, and the pod itself is the endpoint. */
    const testOnEtcd = kind === "etcd" ? test : () => {};
    /** On the API as the datastore also what that needs, but nothing about namespaces. */
    const forPodsAlone =
      kind === "etcd"
        ? [{ group: "", resource: "pods", verb: "get" }]
        : permissionsOf("kubernetes").filter(({ resource }) => resource !== "namespaces");
    let kube: KubeSite;
    beforeAll(async () => {
      if (problem === undefined) kube = await openKubeSite(kind, POOLS);
    });
    afterAll(() => kube?.[Symbol.asyncDispose]());

    const withUid = (pod: KubePod, uid: string): KubePod => ({ ...pod, uid, args: pod.args.replace(pod.uid, uid) });
    const refusalOf = async (pod: KubePod, more: Json = {}) => {
      const { code, msg } = failureOf(await kube.site.call("ADD", pod, kube.options(more)));
      expect(msg).toContain(`pod "${pod.namespace}/${pod.name}"`);
      // Whatever the reason, DEL goes on, and nothing is left.
      await kube.site.quietly("DEL", pod, kube.options(more));
      expect(await kube.site.left()).toEqual([]);
      return { code, msg };
    };

    testOnEtcd("is read once, with its namespace, by ADD alone", async () => {
      const pod = await kube.makePod();
      const audit = kube.server.startAudit();

      await kube.site.add(pod, kube.options());
      expect(audit.counts(kube.user)).toEqual({ "get pods": 1, "get namespaces": 1 });
      await kube.site.quietly("DEL", pod, kube.options());
      expect(audit.counts(kube.user)).toEqual({ "get pods": 1, "get namespaces": 1 });
    });

    testOnEtcd("is not needed by DEL, nor is the API", async () => {
      const pod = await kube.makePod();
      await kube.site.add(pod, kube.options());
      await kube.server.kubectl(["delete", "pod", pod.name, "--namespace=shop", "--force", "--grace-period=0"]);

      await kube.site.quietly("DEL", pod, kube.options({ kubernetes: { kubeconfig: "/nonexistent/kubeconfig" } }));
      expect(await kube.site.left()).toEqual([]);
    });

    test("that is gone is refused with code 3", async () => {
      const pod = await kube.makePod();
      await kube.server.kubectl(["delete", "pod", pod.name, "--namespace=shop", "--force", "--grace-period=0"]);

      expect(await refusalOf(pod)).toEqual({ code: 3, msg: expect.stringContaining("no longer exists") });
    });

    test("that was replaced by another of the same name is refused with code 3", async () => {
      const before = await kube.makePod({ name: "again" });
      await kube.server.kubectl(["delete", "pod", "again", "--namespace=shop", "--force", "--grace-period=0"]);
      const after = await kube.makePod({ name: "again" });

      const { code, msg } = await refusalOf(before);
      expect([code, msg]).toEqual([3, expect.stringContaining(after.uid)]);
      await kube.site.add(after, kube.options());
      await kube.site.quietly("DEL", after, kube.options());
    });

    test("read late does not take the link of its next sandbox, which was attached meanwhile", async () => {
      const pod = await kube.makePod();
      const next = await kube.site.makePod({ args: pod.args });
      const proxy = await startProxy(Number(new URL(kube.server.url).port));
      using _ = await relayIntoNetns(kube.site.host.netns, proxy.port);
      const slow = "/etc/slow-kubeconfig";
      const text = readFileSync(kube.kubeconfig, "utf8");
      kube.site.host.writeFile(slow, text.replace(kube.server.url, `https://127.0.0.1:${proxy.port}`));

      let result: unknown;
      proxy.holdNext(async () => (result = await kube.site.add(next, kube.options())));
      const late = failureOf(await kube.site.call("ADD", pod, kube.options({ kubernetes: { kubeconfig: slow } })));
      await proxy.stop();

      expect(late).toMatchObject({ code: 11, msg: expect.stringContaining("during the call") });
      await kube.site.quietly("CHECK", next, kube.options({ prevResult: result }));
      for (const each of [pod, next]) await kube.site.quietly("DEL", each, kube.options());
      expect(await kube.site.left()).toEqual([]);
    });

    test("on another node is refused: code 11, or 3 if it may be another pod", async () => {
      const pod = await kube.makePod({ spec: { nodeName: "node-2" } });
      expect(await refusalOf(pod)).toEqual({ code: 11, msg: expect.stringContaining('node "node-2"') });
      const withoutUid = { ...pod, args: pod.args.replace(/;K8S_POD_UID=.*/, "") };
      expect((await refusalOf(withoutUid)).code).toBe(3);
    });

    testOnEtcd("may have another name for the node: the host name, or the one in the config", async () => {
      const pod = await kube.makePod({ spec: { nodeName: "node-2" } });
      const access = { kubernetes: { kubeconfig: kube.kubeconfig, node_name: "node-2" } };
      await kube.site.add(pod, kube.options(access));
      await kube.site.quietly("DEL", pod, kube.options(access));
      const hostName = (await kube.site.host.must(["cat", "/proc/sys/kernel/hostname"])).trim().toLowerCase();
      const ofHost = await kube.makePod({ spec: { nodeName: hostName } });
      await kube.site.add(ofHost, kube.options());
      await kube.site.quietly("DEL", ofHost, kube.options());
    });

    test("that is static is known by its mirror pod", async () => {
      const metadata = {
        annotations: { [MIRROR]: STATIC_UID, [`${identity.annotationPrefix}ipAddrs`]: '["10.61.0.7"]' },
      };
      const mirror = await kube.makePod({ metadata });
      const pod = withUid(mirror, STATIC_UID);

      expect((await kube.site.add(pod, kube.options())).ips).toMatchObject([{ address: "10.61.0.7/32" }]);
      await kube.site.quietly("DEL", pod, kube.options());
      expect((await refusalOf(withUid(mirror, STATIC_UID.replace("0", "f")))).code).toBe(11);
      const absent = { ...pod, name: "absent", args: pod.args.replace(`POD_NAME=${pod.name}`, "POD_NAME=absent") };
      expect(await refusalOf(absent)).toEqual({ code: 11, msg: expect.stringContaining("mirror pod") });
    });

    test("is attached with the permission for pods alone, without the annotations of its namespace, which ADD logs once", async () => {
      const role = "reads-pods";
      const metadata = { name: role };
      await kube.server.apply(JSON.stringify({ ...roleObject("etcd", identity, forPodsAlone), metadata }));
      const { kubeconfig } = await kube.server.serviceAccount({ name: role, clusterRole: role });
      await kube.site.host.must(["nft", `add table inet ${identity.policyTable}`]);
      const pools = `${identity.annotationPrefix}ipv4pools`;
      await kube.server.kubectl(["annotate", "namespace", "shop", `${pools}=["no-such-pool"]`]);
      const pod = await kube.makePod({ labels: { app: "web" } });
      const options = kube.options({ kubernetes: { kubeconfig }, policy: { type: "k8s" } });
      const { code, stderr } = await kube.site.call("ADD", pod, options);

      expect([code, stderr.match(/WARNING.*/g)]).toEqual([
        0,
        [
          expect.stringMatching(
            /annotations of the namespace have no effect.*permission to get namespaces.*verbs: \["get"\]/,
          ),
        ],
      ]);
      expect(await endpoint()).toMatchObject({
        metadata: { labels: { app: "web" } },
        spec: { profiles: ["kns.shop", "ksa.shop.default"] },
      });
      await kube.site.quietly("DEL", pod, options);
      // With the permission the annotation counts.
      expect(failureOf(await kube.site.call("ADD", pod, kube.options())).msg).toContain("no-such-pool");
      await kube.server.kubectl(["annotate", "namespace", "shop", `${pools}-`]);
      await kube.site.host.must(["nft", `delete table inet ${identity.policyTable}`]);
    });

    test("cannot be read: ADD names the permission that is missing, or the API that does not respond", async () => {
      const pod = await kube.makePod();
      const { kubeconfig } = await kube.server.serviceAccount({ name: "nobody" });
      const refused = failureOf(await kube.site.call("ADD", pod, kube.options({ kubernetes: { kubeconfig } })));
      expect([refused.code, refused.msg]).toEqual([119, expect.stringMatching(/get (pods|namespaces)/)]);

      const closed = { kubernetes: { k8s_api_root: "http://127.0.0.1:9" } };
      // As the datastore, the API is also unreachable for whatever reads records first.
      const codes = kind === "etcd" ? [119] : [103, 119];
      expect(codes).toContain(failureOf(await kube.site.call("ADD", pod, kube.options(closed))).code);
      expect(await kube.site.left()).toEqual([]);
    });

    test("is read at k8s_api_root, with the credentials in an older config, or those of the pod that the plugin runs in", async () => {
      const { token } = await kube.server.serviceAccount({ name: identity.product });
      const authority = kube.server.credentials.authority.cert;
      const ofPod = "/run/secrets/kubernetes.io/serviceaccount";
      const older = {
        k8s_api_root: `${kube.server.url}/api/v1/`,
        k8s_auth_token: token,
        k8s_certificate_authority: authority,
      };
      const addressWith = async (address: string, more: Json) => {
        const pod = await kube.makePod({ annotations: { [`${identity.annotationPrefix}ipAddrs`]: `["${address}"]` } });
        const { ips } = await kube.site.add(pod, kube.options(more));
        await kube.site.quietly("DEL", pod, kube.options(more));
        return ips[0]?.address;
      };

      expect(await addressWith("10.61.0.11", { kubernetes: {}, policy: older })).toBe("10.61.0.11/32");
      const root = { kubernetes: { k8s_api_root: kube.server.url } };
      expect(await addressWith("10.61.0.12", { ...root, policy: { ...older, k8s_api_root: undefined } })).toBe(
        "10.61.0.12/32",
      );
      kube.site.host.writeFile(`${ofPod}/token`, token);
      kube.site.host.writeFile(`${ofPod}/ca.crt`, readFileSync(authority, "utf8"));
      expect(await addressWith("10.61.0.13", root)).toBe("10.61.0.13/32");
      await kube.site.host.must(["rm", "-r", ofPod]);
      expect(failureOf(await kube.site.call("ADD", await kube.makePod(), kube.options(root))).msg).toContain("TLS");
    });

    test("gets an address of the host's own range with host-local, which IPAM does not record", async () => {
      const ipam = { type: "host-local", ranges: [[{ subnet: "10.78.0.0/24" }]] };
      const options = { ...kube.options({ ipam }), environment: { CNI_PATH: dirname(builtProgram()) } };
      const pod = await kube.makePod();

      const { ips } = await kube.site.add(pod, options);
      expect(ips).toMatchObject([{ address: expect.stringMatching(/^10\.78\.0\.\d+\/32$/) }]);
      expect((await kube.site.left()).filter((line) => /taken|\/handle\//.test(line))).toEqual([]);
      await kube.site.quietly("DEL", pod, options);
      expect(await kube.site.left()).toEqual([]);
    });

    test("gives its endpoint labels, ports, service account and generateName with policy.type k8s, and not without", async () => {
      await kube.server.serviceAccount({ name: "seller", namespace: "shop" });
      const pod = await kube.makePod({
        labels: { app: "web", [`${labelPrefix}orchestrator`]: "forged" },
        metadata: { name: undefined, generateName: "web-", namespace: "shop" },
        spec: {
          serviceAccountName: "seller",
          containers: [
            { name: "main", image: "none", ports: [{ name: "http", containerPort: 80 }, { containerPort: 81 }] },
          ],
          initContainers: [
            { name: "first", image: "none", ports: [{ containerPort: 53, protocol: "UDP", hostPort: 5353 }] },
          ],
        },
      });

      // As the node agent would: without its table, ADD is refused.
      await kube.site.host.must(["nft", `add table inet ${identity.policyTable}`]);
      await kube.site.add(pod, kube.options({ policy: { type: "k8s" } }));
      const { metadata, spec } = await endpoint();
      expect(metadata.generateName).toBe("web-");
      expect(metadata.labels).toMatchObject({
        app: "web",
        [`${labelPrefix}namespace`]: "shop",
        [`${labelPrefix}orchestrator`]: "k8s",
        [`${labelPrefix}serviceaccount`]: "seller",
      });
      expect(spec.serviceAccountName).toBe("seller");
      expect(spec.profiles).toEqual(["kns.shop", "ksa.shop.seller"]);
      expect(spec.ports).toEqual([
        { name: "http", protocol: "TCP", port: 80 },
        { protocol: "UDP", port: 53, hostPort: 5353 },
      ]);

      if (kind === "etcd") {
        // A repeated ADD would keep the labels of the endpoint.
        await kube.site.quietly("DEL", pod, kube.options());
        await kube.site.add(pod, kube.options());
        const without = await endpoint();
        expect(without.metadata.labels).not.toHaveProperty("app");
        expect(without.spec).not.toHaveProperty("ports");
      }
      await kube.site.quietly("DEL", pod, kube.options());
      expect(await kube.site.left()).toEqual([]);
    });

    /** The only one. */
    const endpoint = async () => {
      const [key, value] = [...(await kube.site.store.list())].find(([each]) =>
        each.includes("/workloadendpoints/"),
      ) ?? ["", ""];
      return workloadEndpoint.read(value, key);
    };
  });
