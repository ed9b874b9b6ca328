import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { variantObjects } from "../../release/manifests/variants.ts";
import { objectPath } from "../../release/object-kinds.ts";
import type { Facts, ManifestNetwork } from "../engine/facts.ts";
import type { TargetRelease } from "../engine/target-release.ts";
import {
  PUBLISHED_CONTAINER_FIELDS,
  PUBLISHED_MINORS,
  PUBLISHED_POD_FIELDS,
  type PublishedValue,
} from "../published/published-values.ts";
import { comparedManifest, type StockVariant } from "../published/stock-manifest.ts";
import { daemonSetOf } from "./live-manifest.ts";
import { type ManifestSite, wantedManifest } from "./plan-manifest.ts";
import type { WantedManifest } from "./wanted.ts";

const { product, nodeAgent, controllers, environmentPrefix: PREFIX } = identity;
const TARGET = "v3.29.0";

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
type Any = any;
type Edit = (objects: Any[]) => void;

interface Layout extends StockVariant {
  readonly allowsSourceSpoofing?: boolean;
  readonly version?: string;
  readonly edit?: Edit;
  readonly isStockKnown?: boolean;
  readonly onConflict?: "fail" | "mine" | "theirs";
}

/** A cluster in which the published manifest was applied, and changed. */
async function layOut({ version = "v3.26.4", edit, isStockKnown = true, onConflict = "fail", ...variant }: Layout) {
  const { datastore, network } = variant;
  const stock = await comparedManifest(version, { datastore, network });
  const live: Any[] = structuredClone(stock?.objects ?? []) as Any[];
  const [config] = live.filter(({ data }) => data?.etcd_endpoints !== undefined);
  if (config !== undefined) config.data.etcd_endpoints = "https://10.0.0.1:2379";
  edit?.(live);
  return plan(live, { stock: isStockKnown ? stock : undefined, version, onConflict, ...variant });
}

interface Planned extends StockVariant, Pick<ManifestSite, "stock"> {
  readonly version: string;
  readonly onConflict: "fail" | "mine" | "theirs";
  readonly orchestratorVersion?: string;
  readonly allowsSourceSpoofing?: boolean;
}

function plan(objects: readonly Any[], planned: Planned) {
  const { stock, version, datastore, network, onConflict, orchestratorVersion = "v1.34.0" } = planned;
  const live = new Map<string, Fields>(objects.map((each) => [objectPath(each), each]));
  const method = { kind: "manifest", network } as const;
  const { allowsSourceSpoofing = false } = planned;
  const facts = { method, datastore, version, target: TARGET, orchestratorVersion, allowsSourceSpoofing } as Facts;
  const release = {
    version: TARGET,
    manifest: (variant: StockVariant) => variantObjects(variant, TARGET),
  } as unknown as TargetRelease;
  return wantedManifest({ live, daemonSet: daemonSetOf(live) ?? {}, facts, release, options: { onConflict }, stock });
}

const find = (objects: readonly Any[], kind: string, name?: string) =>
  objects.find((each) => each.kind === kind && (name === undefined || each.metadata.name === name));

/** Of the result. */
function object(wanted: WantedManifest, kind: string, name?: string): Any {
  return find(
    wanted.objects.map(({ object }) => object),
    kind,
    name,
  );
}

const networkList = (wanted: WantedManifest) => JSON.parse(object(wanted, "ConfigMap", "cni-config").data.config);
const typesOf = (wanted: WantedManifest) => networkList(wanted).plugins.map(({ type }: Any) => type);
const agentOf = (daemonSet: Any) => daemonSet.spec.template.spec.containers.find(({ name }: Any) => name === nodeAgent);
const editAgent =
  (change: (agent: Any, pod: Any, daemonSet: Any) => void): Edit =>
  (objects) => {
    const daemonSet = find(objects, "DaemonSet");
    change(agentOf(daemonSet), daemonSet.spec.template.spec, daemonSet);
  };
const setVariable = (name: string, value: string) =>
  editAgent(({ env }) => {
    const found = env.find((each: Any) => each.name === name);
    if (found === undefined) env.push({ name, value });
    else found.value = value;
  });
const editSettings =
  (change: (data: Any) => void): Edit =>
  (objects) =>
    change(find(objects, "ConfigMap").data);

/** As `kubectl apply` leaves it. */
function applied(each: Any): void {
  const text = JSON.stringify(each);
  each.metadata.annotations = {
    ...each.metadata.annotations,
    "kubectl.kubernetes.io/last-applied-configuration": text,
  };
}

const OWN = { datastore: "kubernetes", network: "own" } as const;
const VERSIONS = ["v3.15.1", "v3.22.0", "v3.26.4", "v3.28.2"];

describe("wantedManifest() of an installation that was not changed", () => {
  const variants: readonly (readonly [StockVariant, ManifestNetwork])[] = [
    [OWN, "own"],
    [{ datastore: "kubernetes", network: "fabric" }, "fabric"],
    [{ datastore: "etcd", network: "own" }, "own"],
  ];
  const all = VERSIONS.flatMap((version) => variants.map(([variant, target]) => ({ version, target, ...variant })));

  test.each(all)("is the release: $version, $network on $datastore", async ({ version, target, ...variant }) => {
    const wanted = await layOut({ version, ...variant });
    const release = variantObjects({ ...variant, network: target }, TARGET);
    const agents: Any = find(release.components, "DaemonSet");

    const minor = version.replace(/\.\d+$/, "");
    const notes = [`Your changes are what differs from the published manifest of ${minor}`];
    expect({ obstacles: wanted.obstacles, notes: wanted.notes }).toEqual({ obstacles: [], notes });
    const daemonSet = object(wanted, "DaemonSet");
    expect(daemonSet.spec.template.spec).toEqual(agents.spec.template.spec);
    expect(daemonSet.spec.selector).toEqual({ matchLabels: { "k8s-app": nodeAgent } });
    expect(daemonSet.spec.template.metadata.labels).toEqual({
      ...agents.spec.template.metadata.labels,
      "k8s-app": nodeAgent,
    });
    expect(object(wanted, "Deployment").spec).toEqual(
      variant.datastore === "etcd" ? expect.anything() : (find(release.components, "Deployment") as Any).spec,
    );
    const before = JSON.parse((find(release.components, "ConfigMap") as Any).data.config);
    const mtu = target === "fabric" ? { mtu: 1500 } : version.startsWith("v3.15") ? { mtu: 1440 } : {};
    // The user's log settings are the same in other words.
    expect(networkList(wanted)).toEqual({
      ...before,
      plugins: [{ ...before.plugins[0], ...mtu }, ...before.plugins.slice(1)],
    });
  });

  test("the CSI driver of an earlier release stays as it is: its fields cannot be changed", async () => {
    const spec = { attachRequired: true, podInfoOnMount: true, volumeLifecycleModes: ["Ephemeral"] };
    const metadata = { name: identity.csiDriver };
    const edit: Edit = (objects) =>
      objects.push({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata, spec });

    expect(object(await layOut({ ...OWN, edit }), "CSIDriver").spec).toEqual(spec);
  });

  test("what pods of the earlier release need stays until they are gone", async () => {
    const wanted = await layOut(OWN);
    const modes = Object.fromEntries(
      wanted.objects.map(({ object, mode }) => [`${object.kind} ${object.metadata.name}`, mode]),
    );

    expect(modes).toMatchObject({
      [`ConfigMap ${product}-config`]: "add",
      [`ClusterRole ${nodeAgent}`]: "add",
      "ConfigMap cni-config": "whole",
      [`DaemonSet ${nodeAgent}`]: "whole",
    });
  });
});

describe("wantedManifest() of an installation that was changed", () => {
  test("keeps resources, tolerations, node selectors, affinity, pull secrets and labels of pods", async () => {
    const tolerations = [{ key: "only-this", operator: "Exists" }];
    const wanted = await layOut({
      ...OWN,
      edit: (objects) => {
        editAgent((agent, pod, daemonSet) => {
          agent.resources = { limits: { memory: "1Gi" } };
          Object.assign(pod, { tolerations, imagePullSecrets: [{ name: "key" }] });
          pod.nodeSelector["example.org/network"] = "yes";
          daemonSet.spec.template.metadata.labels.team = "net";
          daemonSet.spec.updateStrategy.rollingUpdate.maxUnavailable = "10%";
        })(objects);
        find(objects, "Deployment").spec.template.spec.containers[0].resources = { requests: { cpu: "1" } };
      },
    });
    const { spec } = object(wanted, "DaemonSet");

    expect(agentOf({ spec }).resources).toEqual({ limits: { memory: "1Gi" } });
    expect(spec.template.spec).toMatchObject({ tolerations, imagePullSecrets: [{ name: "key" }] });
    expect(spec.template.spec.nodeSelector).toEqual({ "kubernetes.io/os": "linux", "example.org/network": "yes" });
    expect(spec.template.metadata.labels.team).toBe("net");
    expect(spec.updateStrategy).toEqual({ type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } });
    expect(object(wanted, "Deployment", controllers).spec.template.spec.containers[0].resources).toEqual({
      requests: { cpu: "1" },
    });
    expect(wanted.obstacles).toEqual([]);
  });

  test("keeps containers of the user with their volumes, and mounts that were added to ours", async () => {
    const wanted = await layOut({
      ...OWN,
      edit: editAgent((agent, pod) => {
        agent.volumeMounts.push({ mountPath: "/etc/ssl/extra", name: "extra" });
        pod.containers.push({ name: "mine", image: "mine:1", volumeMounts: [{ mountPath: "/x", name: "x" }] });
        pod.volumes.push({ name: "x", emptyDir: {} }, { name: "extra", configMap: { name: "ca" } });
      }),
    });
    const pod = object(wanted, "DaemonSet").spec.template.spec;

    expect(pod.containers.map(({ name }: Any) => name)).toEqual([nodeAgent, "mine"]);
    expect(pod.volumes.map(({ name }: Any) => name)).toEqual(["network-config", "x", "extra"]);
    expect(agentOf(object(wanted, "DaemonSet")).volumeMounts.map(({ mountPath }: Any) => mountPath)).toContain(
      "/etc/ssl/extra",
    );
  });

  test.each<[string, string, object]>([
    ["IP_AUTODETECTION_METHOD", "interface=eth.*", { ipv4AddressDetection: "interface=eth.*" }],
    ["IP6_AUTODETECTION_METHOD", "cidr=2001:db8::/64", { ipv6AddressDetection: "cidr=2001:db8::/64" }],
    ["FELIX_PROMETHEUSMETRICSENABLED", "true", { prometheusMetricsEnabled: true }],
    ["FELIX_IPTABLESFILTERDENYACTION", "REJECT", { denyAction: "Reject" }],
    ["FELIX_DEFAULTENDPOINTTOHOSTACTION", "RETURN", { defaultEndpointToHostAction: "Return" }],
    ["FELIX_HEALTHPORT", "9199", { healthPort: 9199 }],
    ["FELIX_VXLANPORT", "8472", { vxlanPort: 8472 }],
    ["FELIX_VXLANVNI", "77", { vxlanVNI: 77 }],
    ["FELIX_FEATUREDETECTOVERRIDE", "ChecksumOffloadBroken=true", { vxlanChecksumOffload: "Off" }],
    ["FELIX_INTERFACEPREFIX", "eni", { interfacePrefix: "eni" }],
    [
      "FELIX_FAILSAFEINBOUNDHOSTPORTS",
      "tcp:22,udp:68",
      {
        failsafeInboundHostPorts: [
          { protocol: "TCP", port: 22 },
          { protocol: "UDP", port: 68 },
        ],
      },
    ],
    ["FELIX_FAILSAFEOUTBOUNDHOSTPORTS", "none", { failsafeOutboundHostPorts: [] }],
  ])("the variable %s becomes a setting", async (name, value, settings) => {
    const wanted = await layOut({ ...OWN, edit: setVariable(name, value) });

    expect(wanted.settings).toEqual(settings);
    expect(wanted.obstacles).toEqual([]);
  });

  test.each([
    ["FELIX_BPFENABLED", "true"],
    ["FELIX_WIREGUARDENABLED", "true"],
    ["FELIX_VXLANPORT", "vxlan"],
    ["FELIX_VXLANPORT", "9089"],
    ["FELIX_VXLANVNI", "16777216"],
    ["IP_AUTODETECTION_METHOD", "magic"],
    ["IP", "192.0.2.1/24"],
    ["FELIX_FAILSAFEINBOUNDHOSTPORTS", "tcp:10.0.0.0/8:22"],
  ])("the variable %s=%s stops the upgrade: without it traffic would be cut", async (name, value) => {
    const { obstacles } = await layOut({ ...OWN, edit: setVariable(name, value) });

    expect(obstacles).toEqual([
      { message: expect.stringContaining(`${name}="${value}"`), remedy: expect.stringMatching(/./) },
    ]);
  });

  test("without the variable of the published manifests, packets to the host are dropped as before", async () => {
    const edit = editAgent((agent) => {
      agent.env = agent.env.filter(({ name }: Any) => name !== "FELIX_DEFAULTENDPOINTTOHOSTACTION");
    });

    expect((await layOut({ ...OWN, edit })).formerDefaults).toEqual({ defaultEndpointToHostAction: "Drop" });
    expect((await layOut(OWN)).formerDefaults).toEqual({});
  });

  describe("variables that come from elsewhere", () => {
    const setSource = (name: string, valueFrom: object) =>
      editAgent((agent) => {
        agent.env = [...agent.env.filter((each: Any) => each.name !== name), { name, valueFrom }];
      });

    test("the address of the host becomes the way to detect addresses", async () => {
      const edit = setSource("IP", { fieldRef: { apiVersion: "v1", fieldPath: "status.hostIP" } });
      const wanted = await layOut({ ...OWN, edit });

      expect(wanted.settings).toEqual({ ipv4AddressDetection: "kubernetes-internal-ip" });
      expect(wanted.obstacles).toEqual([]);
    });

    test.each([
      ["IP", { fieldRef: { fieldPath: "metadata.annotations['address']" } }, "fieldRef"],
      [
        "IP_AUTODETECTION_METHOD",
        { configMapKeyRef: { name: "other", key: "method" } },
        "configMapKeyRef other/method",
      ],
      ["FELIX_BPFENABLED", { secretKeyRef: { name: "s", key: "k" } }, "secretKeyRef s/k"],
    ])("%s stops the upgrade", async (name, valueFrom, source) => {
      const { obstacles } = await layOut({ ...OWN, edit: setSource(name, valueFrom) });

      expect(obstacles).toEqual([
        {
          message: expect.stringContaining(`${name} of the node agent comes from ${source}`),
          remedy: expect.any(String),
        },
      ]);
    });

    test("others are reported", async () => {
      const edit = setSource("HTTPS_PROXY", { secretKeyRef: { name: "proxy", key: "url" } });
      const { notes, obstacles } = await layOut({ ...OWN, edit });

      expect(notes.slice(0, -1)).toEqual([
        expect.stringContaining("HTTPS_PROXY of the node agent comes from secretKeyRef proxy/url"),
      ]);
      expect(obstacles).toEqual([]);
    });
  });

  test.each<[string, (agent: Any, pod: Any) => void]>([
    ["spec.template.spec.securityContext", (_, pod) => Object.assign(pod, { securityContext: { fsGroup: 1 } })],
    [
      `spec.template.spec.containers[${nodeAgent}].securityContext`,
      (agent) => Object.assign(agent, { securityContext: { privileged: false } }),
    ],
    [
      `spec.template.spec.containers[${nodeAgent}].envFrom`,
      (agent) => Object.assign(agent, { envFrom: [{ configMapRef: { name: "mine" } }] }),
    ],
  ])("%s is a conflict", async (path, change) => {
    const { obstacles } = await layOut({ ...OWN, edit: editAgent(change) });

    expect(obstacles.map(({ message }) => message)).toEqual([expect.stringContaining(`: ${path} `)]);
  });

  test("directories of volumes and variables of the installation that have no place any more are reported", async () => {
    const edit = editAgent((_, pod) => {
      pod.volumes.find(({ name }: Any) => name === `var-lib-${product}`).hostPath.path = "/data";
      pod.initContainers
        .find(({ name }: Any) => name === "install-cni")
        .env.push({ name: "SKIP_CNI_BINARIES", value: "bandwidth" });
    });

    expect((await layOut({ ...OWN, edit })).notes.slice(0, -1)).toEqual([
      expect.stringContaining(`Not carried over: volume var-lib-${product} (/data`),
      "Not carried over: variable SKIP_CNI_BINARIES of container install-cni",
    ]);
  });

  test("without a base, mounts of volumes that no release had are kept, and other sources of variables are reported", async () => {
    const edit = editAgent((agent, pod) => {
      agent.volumeMounts.push({ name: "extra", mountPath: "/extra" });
      pod.volumes.push({ name: "extra", hostPath: { path: "/extra" } });
      agent.envFrom = [...(agent.envFrom ?? []), { secretRef: { name: "mine" } }];
    });
    const wanted = await layOut({ ...OWN, edit, isStockKnown: false, onConflict: "theirs" });
    const pod = object(wanted, "DaemonSet").spec.template.spec;

    expect(pod.volumes.map(({ name }: Any) => name)).toEqual(["network-config", "extra"]);
    expect(wanted.notes.filter((each) => /^(Kept: mount|Not)/.test(each))).toEqual([
      `Kept: mount /extra of container ${nodeAgent}`,
      `Not carried over: variables from mine (envFrom) of container ${nodeAgent}`,
    ]);
  });

  test("a variable without a counterpart is reported", async () => {
    const { notes, obstacles } = await layOut({ ...OWN, edit: setVariable("FELIX_CHAININSERTMODE", "Append") });

    expect(notes.slice(0, -1)).toEqual([expect.stringContaining("FELIX_CHAININSERTMODE")]);
    expect(obstacles).toEqual([]);
  });

  test("pools, MTU and backend of the settings go where this release has them", async () => {
    const wanted = await layOut({
      ...OWN,
      edit: (objects) => {
        setVariable(`${PREFIX}IPV4POOL_CIDR`, "10.42.0.0/16")(objects);
        setVariable(`${PREFIX}IPV4POOL_IPIP`, "Never")(objects);
        setVariable(`${PREFIX}IPV4POOL_VXLAN`, "CrossSubnet")(objects);
        editSettings((data) => Object.assign(data, { veth_mtu: "1400", [`${product}_backend`]: "vxlan" }))(objects);
      },
    });

    expect(JSON.parse(object(wanted, "ConfigMap", `${product}-config`).data.default_pools)).toEqual([
      { cidr: "10.42.0.0/16", vxlanMode: "CrossSubnet", natOutgoing: true },
    ]);
    expect(networkList(wanted).plugins[0].mtu).toBe(1400);
    expect(wanted.settings).toEqual({ bgp: "Disabled" });
  });

  test("a removed section of the network config stays removed, an added one stays, and so do changes of ours", async () => {
    const wanted = await layOut({
      ...OWN,
      edit: editSettings((data) => {
        data.cni_network_config = data.cni_network_config
          .replace(/,\s*\{\s*"type": "portmap"[^}]*\}\s*\}/, ', { "type": "tuning", "sysctl": {} }')
          .replace(
            `"type": "${product}-ipam"`,
            `"type": "${product}-ipam", "assign_ipv6": "true", "ipv4_pools": ["10.0.0.0/8"]`,
          )
          .replace('"cniVersion": "0.3.1"', '"cniVersion": "0.2.0"')
          .replace('"log_level": "info"', '"log_level": "debug"');
      }),
    });

    expect(typesOf(wanted)).toEqual([product, "tuning", "bandwidth"]);
    expect(networkList(wanted)).toMatchObject({ cniVersion: "1.0.0", cniVersions: ["1.0.0", "1.1.0"] });
    expect(networkList(wanted).plugins[0]).toMatchObject({
      log_level: "debug",
      ipam: { type: `${product}-ipam`, assign_ipv4: "true", assign_ipv6: "true", ipv4_pools: ["10.0.0.0/8"] },
    });
    const annotations = object(wanted, "DaemonSet").spec.template.metadata.annotations;
    const unedited = object(await layOut(OWN), "DaemonSet").spec.template.metadata.annotations;
    expect(annotations).not.toEqual(unedited);
  });

  test("sources of pods that the former agents allowed become a switch; their variable counts before the resource", async () => {
    const features = async (plan: Partial<Layout>) =>
      networkList(await layOut({ ...OWN, ...plan })).plugins[0].feature_control;
    const on = { allowed_source_prefixes: true };

    expect(await features({})).toBeUndefined();
    expect(await features({ allowsSourceSpoofing: true })).toEqual(on);
    expect(await features({ edit: setVariable("FELIX_WORKLOADSOURCESPOOFING", "Any") })).toEqual(on);
    const off = setVariable("FELIX_WORKLOADSOURCESPOOFING", "Disabled");
    expect(await features({ allowsSourceSpoofing: true, edit: off })).toBeUndefined();
  });

  test("an image with another name is asked about: the release's may not be there", async () => {
    const edit = editAgent((agent) => Object.assign(agent, { image: `harbor.internal/infra/${product}-node:v3.26.4` }));
    const image = `harbor.internal/infra/${product}:${TARGET}`;

    expect((await layOut({ ...OWN, edit })).obstacles).toEqual([
      { message: expect.stringContaining(`image (with "mine": ${image}`), remedy: expect.any(String) },
    ]);
    const mine = await layOut({ ...OWN, edit, onConflict: "mine" });
    expect(agentOf(object(mine, "DaemonSet")).image).toBe(image);
    expect(mine.notes).toContainEqual(`The image ${image} has to be in your registry`);
    const release = agentOf(object(await layOut(OWN), "DaemonSet")).image;
    expect(agentOf(object(await layOut({ ...OWN, edit, onConflict: "theirs" }), "DaemonSet")).image).toBe(release);
  });

  test("directories of the host, the registry of the images and the address of the API server stay", async () => {
    const wanted = await layOut({
      ...OWN,
      edit: editAgent((agent, pod) => {
        agent.image = `registry.example.org/mirror/${product}/node:v3.26.4`;
        agent.env.push({ name: "KUBERNETES_SERVICE_HOST", value: "10.0.0.9" });
        pod.volumes.find(({ name }: Any) => name === "cni-bin-dir").hostPath.path = "/usr/libexec/cni";
      }),
    });
    const agent = agentOf(object(wanted, "DaemonSet"));

    expect(agent.image).toBe(`registry.example.org/mirror/${product}:${TARGET}`);
    expect(wanted.notes).toContain(`The image ${agent.image} has to be in your registry`);
    expect(agent.env).toContainEqual({ name: "CNI_BIN_DIR", value: "/usr/libexec/cni" });
    expect(agent.env).toContainEqual({ name: "KUBERNETES_SERVICE_HOST", value: "10.0.0.9" });
  });

  test("a changed probe is a conflict, which stops unless it is decided", async () => {
    const edit = editAgent((agent) => {
      agent.livenessProbe.periodSeconds = 60;
    });
    const path = `DaemonSet kube-system/${nodeAgent}: spec.template.spec.containers[${nodeAgent}].livenessProbe`;

    expect((await layOut({ ...OWN, edit })).obstacles).toEqual([
      { message: expect.stringContaining(path), remedy: expect.stringContaining("--on-conflict") },
    ]);
    const mine = await layOut({ ...OWN, edit, onConflict: "mine" });
    expect(mine.obstacles).toEqual([]);
    expect(agentOf(object(mine, "DaemonSet")).livenessProbe.periodSeconds).toBe(60);
    const theirs = await layOut({ ...OWN, edit, onConflict: "theirs" });
    expect(agentOf(object(theirs, "DaemonSet")).livenessProbe).toBeUndefined();
  });

  test("without the published manifest, what was applied last is the base, and the plan says so", async () => {
    const tolerations = [{ key: "x", operator: "Exists" }];
    const edit = editAgent((_, pod, daemonSet) => {
      const text = JSON.stringify(daemonSet);
      daemonSet.metadata.annotations = { "kubectl.kubernetes.io/last-applied-configuration": text };
      pod.tolerations = tolerations;
    });
    const wanted = await layOut({ ...OWN, edit, isStockKnown: false, onConflict: "mine" });

    expect(object(wanted, "DaemonSet").spec.template.spec.tolerations).toEqual(tolerations);
    expect(wanted.notes).toContainEqual(expect.stringContaining("compares with what was applied last"));
  });

  test("what was applied last may have edits of the file: a missing plugin and other tolerations are asked", async () => {
    const tolerations = [{ key: "x", operator: "Exists" }];
    const edit: Edit = (objects) => {
      editAgent((_, pod) => Object.assign(pod, { tolerations }))(objects);
      editSettings((data) => {
        data.cni_network_config = data.cni_network_config.replace(/,\s*{\s*"type": "portmap"[^}]*}\s*}/, "");
      })(objects);
      for (const each of objects) applied(each);
    };
    const messages = (await layOut({ ...OWN, edit, isStockKnown: false })).obstacles.map(({ message }) => message);
    const mine = await layOut({ ...OWN, edit, isStockKnown: false, onConflict: "mine" });

    expect(messages).toContainEqual(expect.stringContaining("plugins[portmap]"));
    expect(messages).toContainEqual(expect.stringContaining("spec.template.spec.tolerations"));
    expect(typesOf(mine)).not.toContain("portmap");
    expect(object(mine, "DaemonSet").spec.template.spec.tolerations).toEqual(tolerations);
  });

  test("without any base every difference is asked, except for what a release has published", async () => {
    const edit = editAgent((agent, pod) => {
      pod.tolerations = [{ key: "x", operator: "Exists" }];
      agent.resources = { limits: { memory: "1Gi" } };
    });
    expect((await layOut({ ...OWN, isStockKnown: false })).obstacles).toEqual([]);
    const { obstacles } = await layOut({ ...OWN, edit, isStockKnown: false });
    const messages = obstacles.map(({ message }) => message);

    expect(messages).toContainEqual(expect.stringContaining("spec.template.spec.tolerations"));
    expect(messages).toContainEqual(expect.stringContaining(".resources"));
  });

  test("without any base, what the API server has filled in is not asked about, also if this release has another value", async () => {
    const edit = (dnsPolicy: string) => editAgent((_, pod) => Object.assign(pod, { dnsPolicy }));
    const filledIn = await layOut({ ...OWN, edit: edit("ClusterFirst"), isStockKnown: false });
    const mine = await layOut({ ...OWN, edit: edit("ClusterFirstWithHostNet"), isStockKnown: false });

    expect(filledIn.obstacles).toEqual([]);
    expect(object(filledIn, "DaemonSet").spec.template.spec.dnsPolicy).toBe("Default");
    expect(mine.obstacles.map(({ message }) => message)).toEqual([expect.stringContaining(".dnsPolicy")]);
  });
});

const MINORS = Array.from(
  { length: PUBLISHED_MINORS.last - PUBLISHED_MINORS.first + 1 },
  (_, index) => PUBLISHED_MINORS.first + index,
);
const ALL_VARIANTS: readonly StockVariant[] = [
  OWN,
  { datastore: "kubernetes", network: "other" },
  { datastore: "kubernetes", network: "fabric" },
  { datastore: "etcd", network: "own" },
  { datastore: "etcd", network: "other" },
];

/** What is recorded of one minor release, each value in an installation of its own. */
function recordedEdits(minor: number): readonly Edit[] {
  const valuesOf = (table: Readonly<Record<string, readonly PublishedValue[]>>) =>
    Object.entries(table).flatMap(([name, values]) =>
      values
        .filter(({ first, last }) => minor >= first && minor <= last)
        .map(({ value }) => (fields: Any) => {
          if (value === undefined) delete fields[name];
          else fields[name] = structuredClone(value);
        }),
    );
  return (["DaemonSet", "Deployment"] as const).flatMap((kind) => {
    const podOf = (objects: Any[]) => find(objects, kind).spec.template.spec;
    return [
      ...valuesOf(PUBLISHED_POD_FIELDS[kind]).map((set) => (objects: Any[]) => set(podOf(objects))),
      ...valuesOf(PUBLISHED_CONTAINER_FIELDS[kind]).map((set) => (objects: Any[]) => set(podOf(objects).containers[0])),
    ];
  });
}

describe("wantedManifest() of a release that was not edited", () => {
  const all = MINORS.flatMap((minor) => ALL_VARIANTS.map((variant) => ({ minor, ...variant })));

  test.each(all)("asks nothing about v3.$minor, $network on $datastore", async ({ minor, ...variant }) => {
    for (const edit of recordedEdits(minor)) {
      const { obstacles, notes } = await layOut({ version: `v3.${minor}.3`, ...variant, edit });

      expect(obstacles).toEqual([]);
      expect(notes.filter((note) => /^(Kept: (spec|mount)|Not carried over)/.test(note))).toEqual([]);
    }
  });

  test.each([
    ["v3.16.1", "v3.22"],
    ["v3.24.5", "v3.26"],
    ["v3.27.0", "v3.28"],
    ["v3.29.0", "v3.28"],
  ])("%s is compared with %s, and the plan says so", async (version, minor) => {
    const { notes } = await layOut({ ...OWN, version });

    const text = `^Compared with the published manifest of ${minor},.* of ${version};`;
    expect(notes).toEqual([expect.stringMatching(new RegExp(text))]);
  });

  /** As v3.15 to v3.19 had it. */
  const withoutTimeout = editAgent((agent) => {
    delete agent.livenessProbe.timeoutSeconds;
  });
  const PROBE = `spec.template.spec.containers[${nodeAgent}].livenessProbe`;

  test("compared with its own release, what only others published is the user's change", async () => {
    const { obstacles } = await layOut({ ...OWN, version: "v3.26.4", edit: withoutTimeout });

    expect(obstacles.map(({ message }) => message)).toEqual([expect.stringContaining(`${PROBE} was `)]);
  });

  test("compared with another release, a value that one published gives way to that of this release: the plan says so", async () => {
    const { obstacles, notes } = await layOut({ ...OWN, version: "v3.24.5", edit: withoutTimeout });

    expect(obstacles).toEqual([]);
    expect(notes).toContain(`A value that a release published becomes that of this release: ${PROBE}`);
  });

  test("compared with another minor release, what no release has published is the user's: kept or named, not asked", async () => {
    const tolerations = [{ key: "mine", operator: "Exists" }];
    const variable = {
      name: `${PREFIX}CNI_SERVICE_ACCOUNT`,
      valueFrom: { fieldRef: { fieldPath: "spec.serviceAccountName" } },
    };
    const edit = editAgent((agent, pod) => {
      pod.tolerations = tolerations;
      agent.volumeMounts.push({ name: "sysfs", mountPath: "/sys/fs/", mountPropagation: "Bidirectional" });
      pod.volumes.push({ name: "sysfs", hostPath: { path: "/sys/fs/" } });
      pod.initContainers
        .find(({ name }: Any) => name === "install-cni")
        .env.push(variable, { name: "SKIP_CNI_BINARIES", value: "bandwidth" });
    });
    const wanted = await layOut({ ...OWN, version: "v3.24.5", edit });

    expect(wanted.obstacles).toEqual([]);
    expect(object(wanted, "DaemonSet").spec.template.spec.tolerations).toEqual(tolerations);
    expect(wanted.notes.slice(0, -1)).toEqual([
      "Kept: spec.template.spec.tolerations",
      "Not carried over: variable SKIP_CNI_BINARIES of container install-cni",
    ]);
  });
});

describe("wantedManifest() with flannel", () => {
  test.each(VERSIONS)("our plugin goes on connecting the pods, and flannel the nodes: %s", async (version) => {
    const wanted = await layOut({ datastore: "kubernetes", network: "other", version });
    const { metadata, spec } = object(wanted, "DaemonSet");

    expect(wanted.obstacles).toEqual([]);
    expect(metadata.name).toBe("canal");
    expect(spec.selector).toEqual({ matchLabels: { "k8s-app": "canal" } });
    expect(spec.template.spec.containers.map(({ name }: Any) => name)).toEqual([nodeAgent, "kube-flannel"]);
    expect(spec.template.spec.volumes.map(({ name }: Any) => name)).toContain("flannel-cfg");
    expect(spec.template.spec.initContainers[0].env).toContainEqual({
      name: `${PREFIX}FORMER_NETWORK_CONFIG`,
      value: "10-canal.conflist",
    });
    expect(networkList(wanted)).toMatchObject({ name: "k8s-pod-network" });
    expect(networkList(wanted).plugins[0].ipam).toEqual({ type: "host-local", ranges: [[{ subnet: "usePodCidr" }]] });
    expect(wanted.settings).toEqual({ routing: "Disabled", tablesRefreshInterval: "60s" });
    expect(object(wanted, "ClusterRoleBinding", "canal-flannel").subjects).toEqual([
      { kind: "ServiceAccount", name: nodeAgent, namespace: "kube-system" },
    ]);
  });

  test.each(["v3.29.0", "v3.28.9"])("its next upgrade changes the same DaemonSet: from %s", async (version) => {
    const upgraded = await layOut({ datastore: "kubernetes", network: "other", version: "v3.26.4" });
    const live = upgraded.objects.map((each) => each.object);
    const again = plan(live, {
      version,
      datastore: "kubernetes",
      network: "fabric",
      onConflict: "mine",
      stock: undefined,
    });
    const daemonSets = again.objects.map((each) => each.object).filter(({ kind }) => kind === "DaemonSet");

    expect(daemonSets.map(({ metadata }) => metadata.name)).toEqual(["canal"]);
    expect(object(again, "DaemonSet").spec.template.spec.containers).toMatchObject([
      { name: nodeAgent },
      { name: "kube-flannel" },
    ]);
  });

  test.each(VERSIONS)("on etcd, flannel goes on calling our plugin, under the same name: %s", async (version) => {
    const wanted = await layOut({ datastore: "etcd", network: "other", version });
    const { name, plugins } = networkList(wanted);

    expect(wanted.obstacles).toEqual([]);
    expect(name).toBe("canal");
    expect(plugins[0]).toMatchObject({ type: "flannel", delegate: { type: product, datastore_type: "etcdv3" } });
    expect(plugins[0].delegate.ipam).toBeUndefined();
    expect(object(wanted, "ConfigMap", `${product}-config`).data.etcd_endpoints).toBe("https://10.0.0.1:2379");
  });
});

describe("wantedManifest() and the admission policies", () => {
  const kinds = (orchestratorVersion: string) => {
    const etcd = { datastore: "etcd", network: "own" } as const;
    const { settings, components } = variantObjects(etcd, TARGET);
    const given = { ...etcd, stock: undefined, version: TARGET, onConflict: "fail", orchestratorVersion } as const;
    return plan([...settings, ...components], given).objects.map(({ object: { kind } }) => kind);
  };

  test("are left out on a cluster that is older than they are", () => {
    expect(kinds("v1.30.0")).toContain("ValidatingAdmissionPolicy");
    const older = kinds("v1.29.9-eks-1");
    expect(older.filter((kind) => kind.startsWith("Validating"))).toEqual([]);
    expect(older).toContain("DaemonSet");
  });

  test("the entries that the list has when it is written stay", () => {
    const { settings, components } = variantObjects(OWN, "v3.28.9");
    const given = { ...OWN, stock: undefined, version: "v3.28.9", onConflict: "theirs" } as const;
    const { objects } = plan([...settings, ...components], given);
    expect(objects.find((each) => each.object.metadata.name.endsWith("address-list"))?.mode).toBe("add");
  });
});

describe("wantedManifest() on etcd", () => {
  const ETCD = { datastore: "etcd", network: "own" } as const;
  const files = {
    etcd_ca: `/${product}-secrets/etcd-ca`,
    etcd_cert: `/${product}-secrets/etcd-cert`,
    etcd_key: `/${product}-secrets/etcd-key`,
  };
  const withFiles: Edit = (objects) => {
    editSettings((data) => Object.assign(data, files))(objects);
    find(objects, "Secret").data = { "etcd-ca": "Y2E=", "etcd-cert": "Y2VydA==", "etcd-key": "a2V5" };
  };

  test("endpoints, certificates and the Secret stay, and the controllers find the files where the settings say", async () => {
    const wanted = await layOut({ ...ETCD, edit: withFiles });

    expect(wanted.obstacles).toEqual([]);
    expect(object(wanted, "ConfigMap", `${product}-config`).data).toMatchObject({
      etcd_endpoints: "https://10.0.0.1:2379",
      ...files,
    });
    expect(object(wanted, "Secret")).toBeUndefined();
    const { volumeMounts } = object(wanted, "Deployment").spec.template.spec.containers[0];
    expect(volumeMounts).toContainEqual({ name: "etcd-secrets", mountPath: `/${product}-secrets`, readOnly: true });
  });

  test.each<[string, Edit, string]>([
    [
      "the placeholder",
      editSettings((data) => Object.assign(data, { etcd_endpoints: "http://<ETCD_IP>:<ETCD_PORT>" })),
      "placeholder",
    ],
    ["no endpoints", editSettings((data) => Object.assign(data, { etcd_endpoints: "" })), "is empty"],
    ["what is not a URL", editSettings((data) => Object.assign(data, { etcd_endpoints: "10.0.0.1" })), "not a URL"],
    [
      "a key that the Secret does not have",
      editSettings((data) => Object.assign(data, files)),
      "The Secret has no etcd-key",
    ],
  ])("%s is refused", async (_, edit, message) => {
    const { obstacles } = await layOut({ ...ETCD, edit });

    expect(obstacles.map((each) => each.message)).toContainEqual(expect.stringContaining(message));
  });

  test("what the variables of the node agent say comes before the settings", async () => {
    const edit = (value: object): Edit =>
      editAgent((agent) => {
        const others = agent.env.filter(({ name }: Any) => name !== "ETCD_ENDPOINTS");
        agent.env = [...others, { name: "ETCD_ENDPOINTS", ...value }];
      });
    const wanted = await layOut({ ...ETCD, edit: edit({ value: "https://10.9.9.9:2379" }) });
    const secret = await layOut({ ...ETCD, edit: edit({ valueFrom: { secretKeyRef: { name: "etcd", key: "url" } } }) });

    expect(object(wanted, "ConfigMap", `${product}-config`).data.etcd_endpoints).toBe("https://10.9.9.9:2379");
    expect(wanted.notes.slice(0, -1)).toEqual([expect.stringContaining("etcd_endpoints")]);
    expect(secret.obstacles.map(({ message }) => message)).toEqual([expect.stringContaining("ETCD_ENDPOINTS")]);
  });

  test("certificates in a directory of the host stay there", async () => {
    const hostPath = { path: "/etc/etcd" };
    const edit: Edit = (objects) => {
      withFiles(objects);
      editAgent((_, pod) => {
        const volume = pod.volumes.find(({ name }: Any) => name === "etcd-certs");
        delete volume.secret;
        volume.hostPath = hostPath;
      })(objects);
    };
    const wanted = await layOut({ ...ETCD, edit });

    expect(object(wanted, "DaemonSet").spec.template.spec.volumes).toContainEqual({ name: "etcd-secrets", hostPath });
    expect(object(wanted, "Deployment").spec.template.spec.volumes).toContainEqual({ name: "etcd-secrets", hostPath });
  });
});

describe("wantedManifest() of a former build of this release", () => {
  const build = (version: string) => {
    const { settings, components } = variantObjects(OWN, version);
    return structuredClone([...settings, ...components]) as Any[];
  };
  const given = (onConflict: Planned["onConflict"], version = "v3.28.9") => ({
    ...OWN,
    stock: undefined,
    version,
    onConflict,
  });

  test("an unchanged installation gets the new images, and nothing else is asked", () => {
    const wanted = plan(build("v3.28.9"), given("fail"));

    expect(wanted.obstacles).toEqual([]);
    expect(wanted.objects.map(({ object }) => object)).toEqual(build(TARGET));
  });

  test("settings are the administrator's: they are never asked about, and a placeholder is refused", () => {
    const etcd = { datastore: "etcd", network: "own" } as const;
    const { settings, components } = variantObjects(etcd, "v3.28.9");
    const live = structuredClone([...settings, ...components]) as Any[];
    expect(plan(live, { ...given("fail"), ...etcd }).obstacles).toHaveLength(1);
    const { data } = find(live, "ConfigMap", `${product}-config`);
    Object.assign(data, { etcd_endpoints: "http://10.0.0.1:2379", default_pools: '[{"cidr":"10.1.0.0/16"}]' });
    const wanted = plan(live, { ...given("fail"), ...etcd });

    expect(wanted.obstacles).toEqual([]);
    expect(object(wanted, "ConfigMap", `${product}-config`).data).toEqual(data);
  });

  test("what differs is asked, and kept or not as the user says", () => {
    const live = build("v3.28.9");
    agentOf(find(live, "DaemonSet")).resources = { limits: { memory: "1Gi" } };

    expect(plan(live, given("fail")).obstacles).toHaveLength(1);
    expect(agentOf(object(plan(live, given("mine")), "DaemonSet")).resources).toEqual({ limits: { memory: "1Gi" } });
    expect(object(plan(live, given("theirs")), "DaemonSet")).toEqual(find(build(TARGET), "DaemonSet"));
  });

  test("an image with another name is asked about", () => {
    const live = build("v3.28.9");
    editAgent((agent) => Object.assign(agent, { image: "harbor.internal/infra/net:1" }))(live);

    expect(plan(live, given("fail")).obstacles.map(({ message }) => message)).toEqual([
      expect.stringContaining(`containers[${nodeAgent}].image`),
    ]);
  });

  describe("whose file was edited before it was applied", () => {
    const tolerations = [{ key: "only", operator: "Exists" }];
    const live = build("v3.28.9");
    const config = find(live, "ConfigMap", "cni-config").data;
    const list = JSON.parse(config.config);
    config.config = JSON.stringify({ ...list, plugins: list.plugins.filter(({ type }: Any) => type !== "portmap") });
    editAgent((agent, pod) => {
      pod.tolerations = tolerations;
      agent.resources = { limits: { memory: "2Gi" } };
      agent.env.push({ name: "HTTPS_PROXY", value: "http://proxy:3128" });
      agent.args = ["--old"];
    })(live);
    for (const each of live) applied(each);

    test("is asked about plugins, pods, resources and variables, and not about what the program needs", () => {
      const paths = plan(live, given("fail")).obstacles.map(({ message }) => message.split(": ")[2]?.split(" ")[0]);

      expect(paths.toSorted()).toEqual([
        "data.config.plugins[portmap]",
        `spec.template.spec.containers[${nodeAgent}].env[HTTPS_PROXY]`,
        `spec.template.spec.containers[${nodeAgent}].resources`,
        "spec.template.spec.tolerations",
      ]);
    });

    test("keeps its edits if the user says so", () => {
      const wanted = plan(live, given("mine"));

      expect(typesOf(wanted)).not.toContain("portmap");
      expect(object(wanted, "DaemonSet").spec.template.spec.tolerations).toEqual(tolerations);
      expect(agentOf(object(wanted, "DaemonSet")).resources).toEqual({ limits: { memory: "2Gi" } });
      expect(agentOf(object(wanted, "DaemonSet")).args).toEqual(agentOf(find(build(TARGET), "DaemonSet")).args);
    });
  });

  test("the same version stays as it is", () => {
    const live = build(TARGET);
    agentOf(find(live, "DaemonSet")).resources = { limits: { memory: "1Gi" } };
    const wanted = plan(live, given("fail", TARGET));

    expect(wanted.objects.map(({ object }) => object)).toEqual(live);
    expect(wanted.obstacles).toEqual([]);
  });
});
