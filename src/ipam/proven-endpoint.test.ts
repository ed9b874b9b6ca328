import { describe, expect, test } from "bun:test";
import { address as addressOf } from "../../test/support/ip.ts";
import { API_VERSION } from "../identity.ts";
import { formatAddress } from "../ip/address.ts";
import { type Prefix, parsePrefix } from "../ip/prefix.ts";
import { REPORTED_ANNOTATION, withoutClaims } from "../model/claimed-endpoint.ts";
import { hostInterfaceName } from "../model/host-interface-name.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import type { WorkloadEndpoint, WorkloadEndpointSpec } from "../model/workload-endpoint.ts";
import type { AttachmentRecord } from "./attachment-record.ts";
import { type Proof, provenEndpoint, withHeldAddresses } from "./proven-endpoint.ts";

const LINK = hostInterfaceName({ containerId: "", ifname: "eth0", pod: { namespace: "shop", name: "web" } });
const OWN = "10.0.0.5/32";

interface Given {
  readonly node?: string;
  readonly reported?: readonly string[];
  readonly unreadable?: readonly string[];
  readonly spec?: WorkloadEndpointSpec;
  readonly status?: unknown;
}

function podEndpoint({ node = "n1", reported = [], unreadable = [], spec = {}, status }: Given = {}): WorkloadEndpoint {
  return {
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: {
      name: `${node}-k8s-web-eth0`,
      namespace: "shop",
      annotations: { [REPORTED_ANNOTATION]: JSON.stringify({ podIPs: reported, unreadable }) },
    },
    spec: { orchestrator: "k8s", node, pod: "web", endpoint: "eth0", ipNetworks: [OWN], ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

const RECORD: AttachmentRecord = {
  ...{ mark: "net/c1/eth0", pod: { namespace: "shop", name: "web" } },
  addresses: ["10.0.0.5"],
  floating: [{ internalIP: "10.0.0.5", externalIP: "192.0.2.5" }],
  sourcePrefixes: ["198.51.100.0/24"],
};

const NOTHING: Proof = {
  node: "n1",
  isAssigned: () => false,
  assignedTo: () => [],
  attachmentOf: () => undefined,
  allowsFloating: true,
};
const recorded = (record: AttachmentRecord = RECORD): Proof => ({
  ...NOTHING,
  attachmentOf: (name) => (name === LINK ? record : undefined),
});
/** IPAM holds the address for a pod on a node. */
const held = (address: string, namespace: string, pod: string, node: string): Proof => ({
  ...NOTHING,
  isAssigned: (each, owner) => formatAddress(each) === address && Bun.deepEquals(owner, { namespace, pod, node }),
  assignedTo: (owner) => (Bun.deepEquals(owner, { namespace, pod, node }) ? [addressOf(address)] : []),
});

const proven = (given: Given, proof: Proof) => provenEndpoint(withoutClaims(podEndpoint(given)), proof);
const addressesOf = (given: Given, proof: Proof) => proven(given, proof).endpoint.spec.ipNetworks;

describe("provenEndpoint(), addresses", () => {
  test.each<[string, Given, Proof, readonly string[]]>([
    ["nothing proves", {}, NOTHING, []],
    ["the kubelet reports", { reported: [OWN] }, NOTHING, [OWN]],
    ["the kubelet of another node reports", { node: "n2", reported: [OWN] }, NOTHING, [OWN]],
    ["IPAM holds for the pod, before the kubelet reports it", {}, held("10.0.0.5", "shop", "web", "n1"), [OWN]],
    ["IPAM holds for the pod on another node", { node: "n2" }, held("10.0.0.5", "shop", "web", "n2"), [OWN]],
    ["IPAM holds for the pod, but on a node that it is not on", {}, held("10.0.0.5", "shop", "web", "n2"), []],
    ["IPAM holds for another pod", {}, held("10.0.0.5", "shop", "db", "n1"), []],
    ["IPAM holds for a pod of that name in another namespace", {}, held("10.0.0.5", "mallory", "web", "n1"), []],
    ["an ADD recorded on this host (host-local, ipAddrsNoIpam)", {}, recorded(), [OWN]],
    ["an ADD recorded on this host, but for a pod of another node", { node: "n2" }, recorded(), []],
    [
      "an ADD recorded for another pod whose interface has the same name",
      {},
      recorded({ ...RECORD, pod: { namespace: "shop", name: "db" } }),
      [],
    ],
    [
      "an ADD recorded another address than: the recorded one counts",
      {},
      recorded({ ...RECORD, addresses: ["10.0.0.6"] }),
      ["10.0.0.6/32"],
    ],
  ])("an address that %s", (_, given, proof, expected) => {
    expect(addressesOf(given, proof)).toEqual([...expected]);
  });

  test("counts each address for itself, in the recorded order, and names the others", () => {
    const spec = { ipNetworks: ["10.99.0.66/32", "fd00::5/128", OWN] };
    const { endpoint, refused } = proven({ spec, reported: ["fd00::5/128"] }, held("10.0.0.5", "shop", "web", "n1"));

    expect(endpoint.spec.ipNetworks).toEqual(["fd00::5/128", OWN]);
    expect(refused).toEqual(["address 10.99.0.66/32: neither IPAM, the kubelet nor an ADD on its node says so"]);
  });

  const junk = { spec: { ipNetworks: ["10.99.0.66/32"] } };
  const unreadable = { unreadable: ['podIPs: "garbage"'], spec: { ipNetworks: [] } };
  test.each<[string, Given, Proof, readonly string[]]>([
    ["the kubelet reports", { ...junk, reported: [OWN] }, NOTHING, [OWN]],
    ["the kubelet reports, beside garbage", { ...unreadable, reported: [OWN] }, NOTHING, [OWN]],
    ["the kubelet of another node reports", { ...junk, node: "n2", reported: [OWN] }, NOTHING, [OWN]],
    ["the kubelet reports, beside one", { reported: ["fd00::5/128", OWN] }, NOTHING, [OWN, "fd00::5/128"]],
    ["IPAM holds, before the kubelet reports", junk, held("10.0.0.5", "shop", "web", "n1"), [OWN]],
    ["IPAM holds, beside garbage", unreadable, held("10.0.0.5", "shop", "web", "n1"), [OWN]],
    ["IPAM holds for another pod", junk, held("10.0.0.5", "shop", "db", "n1"), []],
    ["an ADD recorded on this host", junk, recorded(), [OWN]],
  ])("an address that no annotation names, and %s", (_, given, proof, expected) => {
    expect(addressesOf(given, proof)).toEqual([...expected]);
  });

  test("names what could not be read", () => {
    const { refused } = proven({ reported: [OWN], unreadable: ['podIPs: "garbage"'] }, NOTHING);
    expect(refused).toEqual(['podIPs: "garbage": not readable']);
  });

  test("leaves records alone that only the plugin writes", () => {
    const { annotations: _, ...metadata } = podEndpoint().metadata;
    const endpoint = { ...podEndpoint(), metadata };

    expect(withoutClaims(endpoint)).toBe(endpoint);
    expect(provenEndpoint(endpoint, NOTHING)).toEqual({ endpoint, refused: [] });
  });

  test("an endpoint without claims has nothing but what it would have with etcd", () => {
    const { status, metadata } = withoutClaims(podEndpoint({ reported: [OWN], status: { phase: "Failed" } }));
    expect([status, metadata.annotations]).toEqual([{ phase: "Failed" }, {}]);
  });
});

describe("provenEndpoint(), floating IPs and further sources", () => {
  const ipNATs = [{ internalIP: "10.0.0.5", externalIP: "192.0.2.5" }];
  const sources = ["198.51.100.0/24"];
  const specOf = (given: Given, proof: Proof): readonly unknown[] => {
    const { ipNATs: nats, allowSpoofedSourcePrefixes: prefixes } = proven(given, proof).endpoint.spec;
    return [nats, prefixes];
  };

  test.each<[string, Given, Proof, readonly unknown[]]>([
    ["count if an ADD recorded them", {}, recorded(), [ipNATs, sources]],
    ["do not count without a record", { reported: [OWN] }, NOTHING, [undefined, undefined]],
    ["do not count on another node", { node: "n2", reported: [OWN] }, recorded(), [undefined, undefined]],
    ["floating ones need the switch", {}, { ...recorded(), allowsFloating: false }, [undefined, sources]],
    [
      "floating ones need the internal address",
      { reported: [] },
      recorded({ ...RECORD, addresses: [] }),
      [undefined, sources],
    ],
    [
      "others than the recorded ones do not count",
      { reported: [OWN] },
      recorded({
        ...RECORD,
        floating: [{ internalIP: "10.0.0.5", externalIP: "192.0.2.9" }],
        sourcePrefixes: ["198.51.0.0/16"],
      }),
      [undefined, undefined],
    ],
  ])("%s", (_, given, proof, expected) => {
    const spec = { ipNATs, allowSpoofedSourcePrefixes: sources };
    expect(specOf({ ...given, spec }, proof)).toEqual(expected);
  });

  test("names the reason", () => {
    const spec = { ipNATs, allowSpoofedSourcePrefixes: sources };
    const reasons = (proof: Proof) => proven({ spec, reported: [OWN] }, proof).refused;

    expect(reasons(NOTHING)).toEqual([
      "floating IP 192.0.2.5: no ADD on its node recorded it",
      "source prefix 198.51.100.0/24: no ADD on its node recorded it",
    ]);
    expect(reasons({ ...recorded(), allowsFloating: false })).toEqual([
      'floating IP 192.0.2.5: "feature_control.floating_ips" is off',
    ]);
  });
});

describe("withHeldAddresses()", () => {
  const block = (secondary: Readonly<Record<string, string>>): IPAMBlock => ({
    cidr: parsePrefix("10.0.0.4/30") as Prefix,
    affinity: "host:n1",
    allocations: [undefined, 0, undefined, undefined],
    unallocated: [0, 2, 3],
    attributes: [{ handleId: "net.c1", secondary }],
    sequenceNumber: 1n,
    sequenceNumberForAllocation: {},
    deleted: false,
  });

  test.each([
    ["of the pod", { namespace: "shop", pod: "web", node: "n1" }, [OWN]],
    [
      "of the pod, in a record of an older release: the node of the block counts",
      { namespace: "shop", pod: "web" },
      [OWN],
    ],
    ["of another pod", { namespace: "shop", pod: "db", node: "n1" }, []],
    ["borrowed by another node", { namespace: "shop", pod: "web", node: "n2" }, []],
    ["of a container without a pod", {}, []],
    ["of the pod's interface", { namespace: "shop", pod: "web", node: "n1", interface: "eth0" }, [OWN]],
    ["of another interface of the pod", { namespace: "shop", pod: "web", node: "n1", interface: "net1" }, []],
  ])("an address %s", (_, secondary, expected) => {
    const spec = { ipNetworks: [OWN, "10.0.0.6/32"] };
    expect(withHeldAddresses(podEndpoint({ spec }), [block(secondary)]).spec.ipNetworks).toEqual(expected);
  });

  test("an address that no annotation names", () => {
    const spec = { ipNetworks: ["10.0.0.6/32"] };
    const [holder, holding] = [
      { namespace: "shop", pod: "web", node: "n1" },
      (given: Given) => podEndpoint({ spec, ...given }),
    ];

    expect(withHeldAddresses(holding({}), [block(holder)]).spec.ipNetworks).toEqual([OWN]);
    expect(withHeldAddresses(holding({ reported: [OWN] }), []).spec.ipNetworks).toEqual([OWN]);
  });

  test("an address that an ADD recorded on this host, if the program runs there", () => {
    const { node, attachmentOf } = recorded();
    const spec = { ipNetworks: [OWN, "10.99.0.66/32"] };

    expect(withHeldAddresses(podEndpoint({ spec }), [], { node, attachmentOf }).spec.ipNetworks).toEqual([OWN]);
    expect(withHeldAddresses(podEndpoint({ spec }), [], { node: "n2", attachmentOf }).spec.ipNetworks).toEqual([]);
  });

  test("keeps everything else, and an endpoint without claims as it is", () => {
    const reported = podEndpoint({ reported: [OWN] });
    expect(withHeldAddresses(reported, [])).toBe(reported);
    const claiming = podEndpoint();
    expect(withHeldAddresses(claiming, [])).toEqual({ ...claiming, spec: { ...claiming.spec, ipNetworks: [] } });
  });
});
