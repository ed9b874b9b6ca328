import { describe, expect, test } from "bun:test";
import { kindWords } from "../../model/kinds.ts";
import { kindNamed } from "../resources/reference.ts";
import { aliasesOf } from "./aliases.ts";
import { ADMIN_KINDS } from "./kinds.ts";

/** The names of the peer's tool and those that users of podman type, by our kind. */
const OF_PEER: Readonly<Record<string, string>> = {
  BGPConfiguration: "bgpconfig bgpconfigs bgpconfiguration bgpconfigurations",
  BGPFilter: "bgpfilter bgpfilters bgpf bf",
  BGPPeer: "bgppeer bgppeers bgpp bp",
  ClusterInformation: "clusterinfo clusterinfos clusterinformation",
  NodeAgentConfiguration: "felixconfig felixconfigs felixconfiguration felixconfigurations",
  GlobalNetworkPolicy: "gnp gnps globalnetworkpolicy globalnetworkpolicies",
  GlobalNetworkSet: "gnetsets globalnetworkset",
  HostEndpoint: "hep heps hostendpoint HostEndpoints",
  IPPool: "ipp pool pools ippool IPPOOLS",
  IPAddressList: "ipal addresslist addresslists ipaddresslist ipaddresslists",
  IPReservation: "reservation reservations ipreservation",
  KubeControllersConfiguration: "kubecontrollersconfig kubecontrollersconfigs",
  StagedNetworkPolicy: "snp scnp stagednetworkpolicy",
  StagedGlobalNetworkPolicy: "sgnp stagedglobalnetworkpolicy",
  StagedKubernetesNetworkPolicy: "sknp stagedkubernetesnetworkpolicies",
  NetworkPolicy: "np netpol policy pol pols Policies networkpolicy",
  NetworkSet: "netsets networkset",
  Node: "no nos node nodes",
  Profile: "pro pros profile profiles",
  Tier: "tier tiers",
  WorkloadEndpoint: "wep weps workloadendpoint container Containers",
};

describe("kindNamed()", () => {
  test.each(Object.entries(OF_PEER))(
    "%s has the names of the peer's tool, of kubectl and of podman: %s",
    (kind, words) => {
      expect(words.split(" ").map((word) => kindNamed(word).kind)).toEqual(words.split(" ").map(() => kind));
    },
  );

  test.each([
    [
      "pods",
      "it is a kind of Kubernetes: use kubectl (kubectl get pods); their endpoints in the network are workloadendpoints",
    ],
    ["po", "it is a kind of Kubernetes: use kubectl (kubectl get pods)"],
    ["Service", "it is a kind of Kubernetes: use kubectl (kubectl get services)"],
    ["ing", "it is a kind of Kubernetes: use kubectl (kubectl get ingresses)"],
    ["ep", "it is a kind of Kubernetes: use kubectl (kubectl get endpoints)"],
    ["p2.yaml", 'did you mean "-f p2.yaml"?'],
    ["netpoll", 'did you mean "netpol"?'],
    ["nodess", 'did you mean "nodes"?'],
  ])("says what to use instead of %s", (word, hint) => {
    expect(() => kindNamed(word)).toThrow(`Unknown kind "${word}"; ${hint}`);
  });

  test("each name is that of one kind", () => {
    const words = ADMIN_KINDS.flatMap((row) => [...kindWords(row), ...aliasesOf(row)]);

    expect(words.length).toBe(new Set(words).size);
  });
});
