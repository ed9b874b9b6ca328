import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { upgradeSite } from "../../../test/support/upgrade-site.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { clusterObjects } from "../../kube/objects.ts";
import {
  GLOBAL_NETWORK_POLICY,
  NODE_AGENT_CONFIGURATION,
  POOL,
  type PublicKind,
  STAGED_KUBERNETES_NETWORK_POLICY,
  STAGED_NETWORK_POLICY,
  TIER,
} from "../../model/kinds.ts";
import { PROBE_PORT } from "../../model/probe-port.ts";
import { FORMER_UID } from "../former-names.ts";
import { storageStep } from "../steps/storage/step.ts";
import { agentSettings } from "./agent-settings.ts";
import { duplicates } from "./conversion.ts";
import { convertIpam } from "./convert-ipam.ts";
import { convertResources } from "./convert-resources.ts";
import { unknownKinds } from "./read-former.ts";

const HIDDEN = `${identity.labelPrefix}metadata`;

function former(name: string, spec: object, more: object = {}) {
  return { metadata: { name, uid: `uid-${name}`, resourceVersion: "1", ...more }, spec };
}

const NO_IPAM = { blocks: [], affinities: [], handles: [], configurations: [] };

describe("convertResources()", () => {
  test("keeps the tier in the names of policies, except the default one", () => {
    const kind = { plural: "globalnetworkpolicies", target: GLOBAL_NETWORK_POLICY };
    const { records } = convertResources(kind, [
      former("default.web", { tier: "default", selector: "all()" }),
      former("security.web", { tier: "security", selector: "all()" }),
    ]);

    expect(records.map(({ key }) => key)).toEqual(
      ["web", "security.web"].map((name) => GLOBAL_NETWORK_POLICY.key({ name })),
    );
  });

  test("keeps the namespaces and the nodes that a pool is for", () => {
    const spec = { cidr: "10.0.0.0/16", nodeSelector: "has(rack)", namespaceSelector: "tenant == 'a'" };
    const { records } = convertResources({ plural: POOL.plural, target: POOL }, [former("blue", spec)]);

    expect(records.map(({ key, value }) => POOL.codec.read(value, key).spec)).toEqual([
      expect.objectContaining({ nodeSelector: "has(rack)", namespaceSelector: "tenant == 'a'" }),
    ]);
  });

  test("keeps the whole name of a staged policy that has no tier", () => {
    const namesOf = (target: PublicKind) =>
      convertResources({ plural: target.plural, target }, [
        former("default.web", { stagedAction: "Set" }, { namespace: "shop" }),
      ]).records.map(({ key }) => key);

    expect(namesOf(STAGED_KUBERNETES_NETWORK_POLICY)).toEqual([
      STAGED_KUBERNETES_NETWORK_POLICY.key({ name: "default.web", namespace: "shop" }),
    ]);
    expect(namesOf(STAGED_NETWORK_POLICY)).toEqual([STAGED_NETWORK_POLICY.key({ name: "web", namespace: "shop" })]);
  });

  test("refuses an action of a staged policy that nothing carries out", () => {
    const kind = { plural: STAGED_NETWORK_POLICY.plural, target: STAGED_NETWORK_POLICY };
    const { obstacles } = convertResources(kind, [former("web", { stagedAction: "Learn" }, { namespace: "shop" })]);

    expect(obstacles.map(({ message, remedy }) => [message, remedy])).toEqual([
      [
        expect.stringContaining('"Learn" is not allowed; use "Set", "Delete"'),
        `correct or delete it: kubectl edit stagednetworkpolicies.crd.${identity.apiGroup} web -n shop`,
      ],
    ]);
  });

  test("leaves out owners of the product itself, and what is being deleted", () => {
    const owner = (apiVersion: string) => ({ apiVersion, kind: "Tier", name: "x", uid: "u" });
    const all = [owner(API_VERSION), owner(`crd.${identity.apiGroup}/v1`), owner("apps/v1")];
    const annotations = { [HIDDEN]: JSON.stringify({ ownerReferences: all, annotations: { note: "n" } }) };
    const deleted = former("old", { order: 1 }, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const { records, notes } = convertResources(
      { plural: "tiers", target: TIER },
      [former("security", { order: 100 }, { annotations }), deleted],
      () => true,
    );

    expect(records.map(({ value }) => JSON.parse(value).metadata)).toEqual([
      {
        name: "security",
        annotations: { note: "n", [FORMER_UID]: "uid-security" },
        ownerReferences: [owner("apps/v1")],
      },
    ]);
    expect(notes).toEqual(['Tier "old" is being deleted, and not copied']);
  });

  test("refuses labels that objects of the API cannot have", () => {
    const labels = { ok: "", "vendor.org/role": "db", role: "of/web" };
    const hidden = former("security", { order: 1 }, { annotations: { [HIDDEN]: JSON.stringify({ labels }) } });
    const { obstacles } = convertResources({ plural: "tiers", target: TIER }, [hidden]);

    expect(obstacles.map(({ message }) => message)).toEqual([
      expect.stringContaining('label "role" with value "of/web" cannot be one of an object of the API'),
    ]);
  });

  test("refuses two policies that would become one", () => {
    const kind = { plural: "globalnetworkpolicies", target: GLOBAL_NETWORK_POLICY };
    const twice = ["default.web", "web"].map((name) => former(name, { selector: "all()" }));

    expect(duplicates(convertResources(kind, twice).records).map(({ message }) => message)).toEqual([
      'GlobalNetworkPolicy "default.web" and GlobalNetworkPolicy "web" cannot both be moved: they have the same name in the present storage',
    ]);
  });

  test("names metadata that cannot be read", () => {
    const damaged = former("security", {}, { annotations: { [HIDDEN]: "{" } });
    const { obstacles } = convertResources({ plural: "tiers", target: TIER }, [damaged]);

    expect(obstacles.map(({ message }) => message)).toEqual([
      expect.stringContaining('Tier "security" cannot be moved'),
    ]);
  });
});

describe("convertIpam()", () => {
  test("leaves out what a writer has marked as deleted, and names what it cannot read", () => {
    const handles = [
      former("net.gone", { handleID: "net.gone", block: {}, deleted: true }),
      former("net.odd", { handleID: "net.odd", block: { "10.0.0.0/26": "one" } }),
    ];
    const affinities = [
      former("n-10-0-0-0-26", { state: "confirmed", node: "n", cidr: "10.0.0.0/26", deleted: "true" }),
    ];
    const { records, notes, obstacles } = convertIpam({ ...NO_IPAM, handles, affinities });

    expect(records).toEqual([]);
    expect(notes).toHaveLength(2);
    expect(obstacles.map(({ remedy }) => remedy)).toEqual([
      `correct or delete it: kubectl edit ipamhandles.crd.${identity.apiGroup} net.odd`,
    ]);
  });

  test("carries the rest of released addresses, and frees those that rest", () => {
    const releasedAt = "2026-06-01T10:00:00Z";
    const attributes = [
      { handle_id: "net.a", secondary: { node: "n", namespace: "shop" } },
      { handle_id: null, secondary: { node: "n", namespace: "shop" }, releasedAt },
    ];
    const spec = {
      cidr: "10.0.0.0/30",
      affinity: "host:n",
      allocations: [0, 1, null, 1],
      unallocated: [2],
      attributes,
    };
    const blocks = [former("10-0-0-0-30", { ...spec, sequenceNumberForAllocation: {}, sequenceNumber: 5 })];
    const configurations = [former("default", { autoAllocateBlocks: true, ipCooldownSeconds: 100_000 })];
    const { records, obstacles } = convertIpam({ ...NO_IPAM, blocks, configurations });

    expect(obstacles).toEqual([]);
    expect(JSON.parse(records[0]?.value ?? "")).toMatchObject({ cooldownSeconds: 86_400 });
    const release = { at: Date.parse(releasedAt) / 1000, namespace: "shop" };
    expect(JSON.parse(records[1]?.value ?? "")).toMatchObject({
      allocations: [0, null, null, null],
      unallocated: [2, 1, 3],
      attributes: [{ handle_id: "net.a" }],
      released: { 1: release, 3: release },
    });
  });

  test("takes an affinity without a state as confirmed, as earlier releases do", () => {
    const affinities = [former("n-10-0-0-0-26", { state: "", node: "n", cidr: "10.0.0.0/26", deleted: "false" })];

    expect(convertIpam({ ...NO_IPAM, affinities }).records.map(({ value }) => value)).toEqual([
      '{"state":"confirmed","deleted":false}',
    ]);
  });
});

test("unknownKinds() names kinds that are not copied, if there are objects of them", async () => {
  const objects = {
    read: async () => ({
      resources: [{ name: "ippools" }, { name: "nodestatuses" }, { name: "nodestatuses/status" }, { name: "empty" }],
    }),
    list: async (path: string) => (path.endsWith("nodestatuses") ? [{}, {}] : []),
    readText: async () => undefined,
  };

  expect(await unknownKinds(objects)).toEqual([
    `2 objects of nodestatuses.crd.${identity.apiGroup} are not copied: this release has no such kind`,
  ]);
});

describe("the settings of the node agent on etcd", () => {
  const key = (name: string) => `${identity.etcdRoot}/resources/v3/${identity.apiGroup}/felixconfigurations/${name}`;
  const put = (name: string, spec: object) => {
    const value = JSON.stringify({ kind: "FelixConfiguration", metadata: { name, uid: `uid-${name}` }, spec });
    return { kind: "put", key: key(name), value } as const;
  };
  const PLAN = { step: "storage", changes: [], obstacles: [], notes: [], estimatedSeconds: 0, data: {} };

  test("are not copied if failsafe ports would be open more widely", async () => {
    const store = openMemory();
    const objects = clusterObjects({ request: async () => ({ status: 404, text: "{}" }) });
    const site = upgradeSite({ objects, store, facts: { storage: "etcd", datastore: "etcd" } });
    await store.commit([put("node.two", { failsafeInboundHostPorts: [{ port: 2222, net: "10.0.0.0/8" }] })]);

    expect((await storageStep.plan(site))?.obstacles.map(({ message }) => message)).toEqual([
      expect.stringContaining('FelixConfiguration "node.two" cannot be copied: this release does not have'),
    ]);
    expect((await rejectionOf(() => storageStep.act(site, PLAN))).kind).toBe("resource-invalid");
  });

  test.each([
    ["vxlanPort", PROBE_PORT],
    ["vxlanPort", 0],
    ["vxlanVNI", 2 ** 24],
  ])("are not copied with %s %d, which agents cannot use, and another would cut nodes off", async (field, value) => {
    const store = openMemory();
    const objects = clusterObjects({ request: async () => ({ status: 404, text: "{}" }) });
    const site = upgradeSite({ objects, store, facts: { storage: "etcd", datastore: "etcd" } });
    await store.commit([put("default", { [field]: value })]);
    const reason = expect.stringMatching(new RegExp(`Configuration "default" cannot be .*${field}.*${value}`));

    expect((await storageStep.plan(site))?.obstacles.map(({ message }) => message)).toEqual([reason]);
    expect((await rejectionOf(() => storageStep.act(site, PLAN))).kind).toBe("resource-invalid");
    const kind = { plural: "felixconfigurations", target: NODE_AGENT_CONFIGURATION };
    const { obstacles } = convertResources(kind, [former("default", { [field]: value })]);
    expect(obstacles.map(({ message }) => message)).toEqual([reason]);
  });

  test("are silent about what former agents wrote themselves, and about what this release does anyway", () => {
    const written = { logSeverityScreen: "Info", floatingIPs: "Disabled", reportingInterval: "0s", bpfLogLevel: "" };
    const usual = { bpfEnabled: false, policySyncPathPrefix: "/var/run/nodeagent", ipipEnabled: true };

    expect(agentSettings("default", { ...written, ...usual, healthPort: 9098 })).toEqual({
      spec: { healthPort: 9098 },
      notes: [],
      problems: [],
    });
    const { notes } = agentSettings("default", { logSeverityScreen: "Debug", reportingInterval: "30s" });
    expect(notes).toEqual([expect.stringMatching(/not copied: logSeverityScreen, reportingInterval$/)]);
  });

  test("keep failsafe ports of every network, which former programs wrote with an empty one", () => {
    const ports = [{ protocol: "TCP", port: 2222, net: "" }];
    const kept = [{ protocol: "TCP", port: 2222 }];

    expect(agentSettings("default", { failsafeInboundHostPorts: ports, failsafeOutboundHostPorts: ports })).toEqual({
      spec: { failsafeInboundHostPorts: kept, failsafeOutboundHostPorts: kept },
      notes: [],
      problems: [],
    });
  });

  test.each(["bpfEnabled", "wireguardEnabled", "wireguardEnabledV6"])(
    "are not copied without %s, which would cut traffic or encryption",
    (field) => {
      const { notes, problems } = agentSettings("default", { [field]: true });

      expect(notes).toEqual([]);
      expect(problems).toEqual([expect.stringContaining(`"${field}" is true: `)]);
    },
  );

  test("name the way out of the former dataplane, with the operator too, and when it takes effect", () => {
    const { problems } = agentSettings("default", { bpfEnabled: true });

    for (const text of ["kube-proxy first", "bpfEnabled to false", "linuxDataplane of the Installation", "at once"])
      expect(problems).toEqual([expect.stringContaining(text)]);
  });

  test("say what becomes of the switch for source spoofing", async () => {
    const store = openMemory();
    const objects = clusterObjects({ request: async () => ({ status: 404, text: "{}" }) });
    const site = upgradeSite({ objects, store, facts: { storage: "etcd", datastore: "etcd" } });
    const any = { workloadSourceSpoofing: "Any" };
    await store.commit([
      put("default", any),
      put("node.one", any),
      put("node.two", { workloadSourceSpoofing: "Disabled" }),
    ]);

    expect((await storageStep.plan(site))?.notes).toEqual([
      expect.stringContaining('"default": workloadSourceSpoofing "Any" becomes the switch allowedSourcePrefixes'),
      expect.stringContaining('"node.one": workloadSourceSpoofing "Any" is not copied'),
    ]);
  });

  test("keep what happens to denied packets, with its present name", () => {
    for (const former of ["iptablesFilterDenyAction", "nftablesFilterDenyAction"]) {
      expect(agentSettings("node.one", { [former]: "REJECT" })).toEqual({
        ...{ spec: { denyAction: "Reject" }, notes: [], problems: [] },
      });
    }
  });

  test("keep the port and the VNI of VXLAN, and what was said about checksum offload", () => {
    const former = {
      vxlanPort: 8472,
      vxlanVNI: 77,
      featureDetectOverride: "SNATFullyRandom=true,ChecksumOffloadBroken=true",
    };

    expect(agentSettings("default", former)).toEqual({
      spec: { vxlanPort: 8472, vxlanVNI: 77, vxlanChecksumOffload: "Off" },
      notes: [expect.stringContaining("fields that this release does not have are not copied: featureDetectOverride")],
      problems: [],
    });
    expect(
      agentSettings("node.one", { vxlanPort: 8472, featureDetectOverride: "ChecksumOffloadBroken=false" }),
    ).toEqual({
      spec: { vxlanChecksumOffload: "On" },
      notes: ['FelixConfiguration "node.one": vxlanPort 8472 is not copied: it is the same on all nodes'],
      problems: [],
    });
  });

  test("are copied beside the former ones, those of an administrator stay, and a rollback removes the copies", async () => {
    const store = openMemory();
    const objects = clusterObjects({ request: async () => ({ status: 404, text: "{}" }) });
    const site = upgradeSite({ objects, store, facts: { storage: "etcd", datastore: "etcd" } });
    expect(await storageStep.plan(site)).toBeUndefined();
    await store.commit([
      put("default", { healthPort: 9098, chainInsertMode: "Append" }),
      put("node.one", {}),
      put("odd", {}),
    ]);
    const own = NODE_AGENT_CONFIGURATION.codec.make({ name: "node.one" }, { healthPort: 1 });
    const ownKey = NODE_AGENT_CONFIGURATION.key({ name: "node.one" });
    await store.commit([{ kind: "put", key: ownKey, value: NODE_AGENT_CONFIGURATION.codec.write(own) }]);

    const plan = await storageStep.plan(site);
    expect(plan?.changes).toEqual([{ action: "create", what: 'NodeAgentConfiguration "default"' }]);
    expect(plan?.notes).toEqual([expect.stringContaining("chainInsertMode")]);
    await storageStep.act(site, PLAN);
    expect(await storageStep.remaining(site, PLAN)).toEqual([]);
    const copies = async () =>
      (await store.read([{ kind: "prefix", prefix: NODE_AGENT_CONFIGURATION.prefix() }])).answers
        .flat()
        .map((entry) => NODE_AGENT_CONFIGURATION.codec.read(entry.value, entry.key))
        .map(({ metadata, spec }) => [metadata.name, spec.healthPort]);
    expect(await copies()).toEqual([
      ["default", 9098],
      ["node.one", 1],
    ]);
    await storageStep.rollback?.(site, PLAN);
    expect(await copies()).toEqual([["node.one", 1]]);
  });
});
