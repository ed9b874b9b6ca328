import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import { identity } from "../../identity.ts";
import { type NodeValues, nodeNetworkList } from "./network-list.ts";

const VALUES: NodeValues = { nodeName: "node-1", kubeconfig: "/etc/cni/net.d/own-kubeconfig", etcdFiles: {} };
const OWN = { type: identity.product, ipam: { type: identity.ipamType } };

function listOf(...plugins: readonly object[]): string {
  return JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins });
}

function ownOf(plugin: object, values: NodeValues = VALUES) {
  const { text } = nodeNetworkList(listOf(plugin, { type: "portmap" }), "config", values);
  return JSON.parse(text).plugins[0];
}

describe("nodeNetworkList()", () => {
  test("adds what differs from node to node, and leaves the rest", () => {
    const given = {
      ...OWN,
      datastore_type: "kubernetes",
      kubernetes: { k8s_api_root: "https://10.0.0.1:6443" },
      mtu: 1400,
    };
    const { text } = nodeNetworkList(listOf(given, { type: "portmap" }), "config", VALUES);
    const { plugins, ...rest } = JSON.parse(text);

    expect(rest).toEqual({ name: "pods", cniVersion: "1.0.0" });
    expect(plugins).toEqual([
      {
        ...given,
        nodename: "node-1",
        kubernetes: { k8s_api_root: "https://10.0.0.1:6443", kubeconfig: VALUES.kubeconfig },
      },
      { type: "portmap" },
    ]);
  });

  test("keeps the log file as the cluster has it: elsewhere, or none", () => {
    expect(ownOf({ ...OWN, log_file_path: "/var/log/own.log" }).log_file_path).toBe("/var/log/own.log");
    expect(ownOf(OWN)).not.toHaveProperty("log_file_path");
  });

  test("completes the entry that another plugin calls, and leaves its IPAM to that plugin", () => {
    const delegate = { type: identity.product, datastore_type: "etcdv3" };
    const list = nodeNetworkList(listOf({ type: "flannel", delegate }, { type: "portmap" }), "config", VALUES);
    const [flannel] = JSON.parse(list.text).plugins;

    expect(flannel).toMatchObject({ type: "flannel", delegate: { ...delegate, nodename: "node-1" } });
    expect(flannel.delegate.ipam).toBeUndefined();
    expect(list.own).toMatchObject({ ...delegate, name: "pods", kubernetes: { kubeconfig: VALUES.kubeconfig } });
  });

  test("replaces the endpoints of etcd, and names its files", () => {
    const etcdFiles = { etcd_ca_cert_file: "/tls/ca", etcd_cert_file: "/tls/cert", etcd_key_file: "/tls/key" };
    const own = ownOf(
      { ...OWN, etcd_endpoints: "http://old:2379" },
      { ...VALUES, etcdFiles, etcdEndpoints: "https://new:2379" },
    );

    expect(own).toMatchObject({ ...etcdFiles, etcd_endpoints: "https://new:2379" });
  });

  const REFUSED = [
    ["{", "it is not valid JSON"],
    ["[]", "it is not a JSON object"],
    [listOf({ type: "ptp" }), "do not have one entry of type"],
    [listOf(OWN, OWN), "do not have one entry of type"],
    [listOf({ ...OWN, mtu: "large" }), '"mtu"'],
  ] as const;

  test.each(REFUSED)("refuses %s", (text, reason) => {
    const { kind, message, details } = thrownBy(() => nodeNetworkList(text, "/etc/config", VALUES));
    expect([kind, message]).toEqual(["config-invalid", expect.stringContaining(reason)]);
    expect(message).toContain('"/etc/config"');
    expect(details).toContain("ConfigMap");
  });
});
