import { describe, expect, test } from "bun:test";
import { decode } from "../../test/support/network-config.ts";
import { identity } from "../identity.ts";
import { datastoreSettings } from "./datastore-settings.ts";

describe("datastoreSettings()", () => {
  test.each([
    [{}, { kind: "etcd", source: { kind: "endpoints", endpoints: ["http://127.0.0.1:2379"] } }],
    [
      { etcd_authority: "old:4001", etcd_scheme: "https" },
      { kind: "etcd", source: { kind: "endpoints", endpoints: ["https://old:4001"] } },
    ],
    [
      { etcd_authority: "old:4001", etcd_endpoints: "http://a:1,http://b:2" },
      { kind: "etcd", source: { kind: "endpoints", endpoints: ["http://a:1", "http://b:2"] } },
    ],
    [
      { etcd_discovery_srv: "example.org", etcd_authority: "old:4001" },
      { kind: "etcd", source: { kind: "discovery", domain: "example.org" } },
    ],
    [
      { etcd_endpoints: "https://a:1", etcd_key_file: "/k", etcd_cert_file: "/c", etcd_ca_cert_file: "/ca" },
      {
        kind: "etcd",
        source: { kind: "endpoints", endpoints: ["https://a:1"] },
        keyFile: "/k",
        certFile: "/c",
        caCertFile: "/ca",
      },
    ],
    [
      { datastore_type: "orchestrator", etcd_endpoints: "http://a:1" },
      { kind: "orchestrator", access: {} },
    ],
    [
      { datastore_type: "kubernetes", kubernetes: { kubeconfig: "/k", k8s_api_root: "https://a" } },
      { kind: "orchestrator", access: { kubeconfigs: ["/k"], apiRoot: "https://a" } },
    ],
    [{ datastore_type: "embedded" }, { kind: "embedded", path: `${identity.stateDirectory}/datastore.sqlite` }],
    [
      { datastore_type: "embedded", datastore_path: "/x" },
      { kind: "embedded", path: "/x" },
    ],
  ])("%p", (given, settings) => {
    expect(datastoreSettings(decode(given))).toEqual(settings as ReturnType<typeof datastoreSettings>);
  });
});
